// The live kernel: Python, exact arithmetic and this library, all served with the page.
// It answers {id, target, args, file} with {id, answer, ms} or {id, error}.
const here = new URL('.', import.meta.url);
const vendor = new URL('../vendor/pyodide/', here).href;

const ready = (async () => {
  const [{ loadPyodide }, files] = await Promise.all([
    import(vendor + 'pyodide.mjs'),
    fetch(new URL('files.json', here)).then((reply) => reply.json()),
  ]);
  const library = fetch(new URL(files.library, here)).then((reply) => reply.arrayBuffer());
  const python = await loadPyodide({ indexURL: vendor });
  await python.loadPackage(vendor + files.flint, { messageCallback: () => {} });
  python.unpackArchive(await library, 'zip', { extractDir: '/interp' });
  python.runPython("import sys; sys.path.insert(0, '/interp')");
  return python.runPython('from interp_lib.explorers.base import answer; answer');
})();

ready.then(() => postMessage({ ready: true }), (problem) => postMessage({ fatal: String(problem) }));

onmessage = async ({ data: { id, target, args, file } }) => {
  try {
    const answer = await ready;
    const start = performance.now();
    const text = answer(target, args, file);
    postMessage({ id, answer: JSON.parse(text), ms: performance.now() - start });
  } catch (problem) {
    postMessage({ id, error: String(problem).trim().split('\n').pop() });
  }
};
