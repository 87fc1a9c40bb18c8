// The page's side of an explorer: controls, address, downloads.  One worker serves all explorers of a page.
let worker = null;
let started = null;
let asked = 0;
const waiting = new Map();

function start() {
  started ??= new Promise((resolve, reject) => {
    worker = new Worker(new URL('worker.mjs', import.meta.url), { type: 'module' });
    worker.onerror = (problem) => {
      const reason = problem.message || 'the worker could not start';
      reject(reason);
      for (const { reject: fail } of waiting.values()) fail(reason);
      waiting.clear();
    };
    worker.onmessage = ({ data }) => {
      if (data.ready) return resolve();
      if (data.fatal) return reject(data.fatal);
      const { resolve: done, reject: fail } = waiting.get(data.id);
      waiting.delete(data.id);
      return data.error ? fail(data.error) : done(data);
    };
  });
  return started;
}

function ask(target, args, file = '') {
  return new Promise((resolve, reject) => {
    asked += 1;
    waiting.set(asked, { resolve, reject });
    worker.postMessage({ id: asked, target, args: JSON.stringify(args), file });
  });
}

// The picture as a file of its own: without the page's style sheet, so with the colours and letters seen now.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const originals = [...svg.querySelectorAll('*')];
  for (const [index, element] of [...copy.querySelectorAll('*')].entries()) {
    const seen = getComputedStyle(originals[index]);
    for (const name of ['fill', 'stroke']) if (element.hasAttribute(name)) element.setAttribute(name, seen[name]);
    if (element.tagName === 'text') element.style.fontSize = seen.fontSize;
  }
  for (const handle of copy.querySelectorAll('.explorer-handle')) handle.remove();
  copy.setAttribute('font-family', 'sans-serif');
  copy.style.background = getComputedStyle(document.body).backgroundColor;
  return new XMLSerializer().serializeToString(copy);
}

function save(name, text, type) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

class Explorer {
  constructor(box, index) {
    this.box = box;
    this.spec = JSON.parse(box.dataset.explorer);
    // The explorer's name in the address; a second one of the same kind on a page gets a number.
    const kind = (one) => JSON.parse(one.dataset.explorer).target.split(':')[0].split('.').pop();
    const before = [...document.querySelectorAll('.explorer')].slice(0, index).filter((one) => kind(one) === kind(box)).length;
    this.key = kind(box) + (before ? before + 1 : '');
    this.controls = new Map(this.spec.parameters.map((p) => [p.name, box.querySelector(`[name="${p.name}"]`)]));
    this.status = box.querySelector('.explorer-status');
    this.fieldset = box.querySelector('fieldset');
    this.busy = false;
    this.again = false;
    this.failed = false;
    for (const p of this.spec.parameters) this.controls.get(p.name).addEventListener('input', () => this.changed());
    box.addEventListener('click', (event) => this.pressed(event));
    this.wide = box.querySelector('[data-action="wide"]');
    this.wide.hidden = before > 0 || new URL(wideAddress()).pathname === location.pathname;
    const picture = box.querySelector('.explorer-picture');
    picture.addEventListener('pointerdown', (event) => this.drag(event));
    picture.addEventListener('keydown', (event) => this.nudge(event));
    // Without this script the controls could not do anything, so the page comes with them disabled.
    this.fieldset.disabled = false;
    box.querySelector('.explorer-actions').hidden = false;
    this.restored = this.restore();
    this.refresh();
  }

  value(p) {
    const control = this.controls.get(p.name);
    if (p.kind === 'flag') return control.checked;
    if (p.kind === 'choice' || p.kind === 'text') return control.value;
    return p.kind === 'log' ? 10 ** Number(control.value) : Number(control.value);
  }

  args() {
    return Object.fromEntries(this.spec.parameters.map((p) => [p.name, this.value(p)]));
  }

  raw(p) {
    const control = this.controls.get(p.name);
    return p.kind === 'flag' ? String(Number(control.checked)) : control.value;
  }

  set(p, text) {
    const control = this.controls.get(p.name);
    if (p.kind === 'flag') control.checked = text === '1' || text === true;
    else control.value = text;
  }

  refresh() {
    for (const p of this.spec.parameters) {
      const control = this.controls.get(p.name);
      const output = control.parentElement.querySelector('output');
      if (output) output.textContent = p.kind === 'log' ? Number((10 ** control.value).toPrecision(3)) : control.value;
      control.parentElement.hidden = !this.visible(p);
    }
    this.box.querySelector('[data-action="link"]').href = this.address(location.href, true);
    if (!this.wide.hidden) this.wide.href = this.address(wideAddress(), false);
  }

  // An address that brings this explorer back as it is; other explorers of the page keep their part of it if asked.
  address(page, keep) {
    const state = new URLSearchParams(keep && location.hash.includes('=') ? location.hash.slice(1) : '');
    for (const p of this.spec.parameters) state.set(`${this.key}.${p.name}`, this.raw(p));
    const url = new URL(page);
    url.hash = state;
    return url.href;
  }

  // A control is of use while the one it depends on has the right value and is of use itself.
  visible(p) {
    if (!p.visible_when) return true;
    const [name, least] = p.visible_when;
    const text = this.controls.get(name).value;
    const enough = Array.isArray(least) ? least.includes(text) : Number(text) >= least;
    return enough && this.visible(this.spec.parameters.find((other) => other.name === name));
  }

  changed() {
    this.refresh();
    this.redraw();
  }

  // One request at a time; of those that come meanwhile only the newest counts.
  async redraw() {
    this.again = true;
    if (this.busy || this.failed) return;
    this.busy = true;
    this.box.dataset.state = 'busy';
    try {
      if (!this.box.dataset.live) this.say('Starting Python in this page…');
      await start();
    } catch (problem) {
      this.failed = true;
      this.busy = false;
      this.fieldset.disabled = true;
      this.box.dataset.state = 'failed';
      this.say(`Python could not start here, so this picture keeps its starting values. (${problem})`);
      return;
    }
    let words;
    while (this.again) {
      this.again = false;
      try {
        const began = performance.now();
        const { answer, ms } = await ask(this.spec.target, this.args());
        if (this.show(answer)) this.again = true;
        this.box.dataset.live = '1';
        this.box.dataset.ms = (performance.now() - began).toFixed(1);
        this.box.dataset.state = 'done';
        words = `Computed in this page in ${ms.toFixed(0)} ms.`;
      } catch (problem) {
        this.box.dataset.state = 'failed';
        words = `This picture could not be computed: ${problem}`;
      }
      if (this.again) this.box.dataset.state = 'busy';
    }
    this.busy = false;
    // Screen readers hear what the picture shows once the slider rests.
    clearTimeout(this.speech);
    this.speech = setTimeout(() => this.say(words, this.box.querySelector('.explorer-picture desc')?.textContent), 300);
  }

  say(words, description = '') {
    const hidden = Object.assign(document.createElement('span'), { className: 'visually-hidden', textContent: ` ${description}` });
    this.status.replaceChildren(words, hidden);
  }

  // Returns whether new limits moved a value, so that the picture must be computed again.
  show({ svg, numbers, limits, files }) {
    const focused = document.activeElement?.dataset?.x;
    this.box.querySelector('.explorer-picture').innerHTML = svg;
    this.box.querySelector('.explorer-words p').textContent = this.box.querySelector('.explorer-picture desc')?.textContent ?? '';
    if (focused) this.box.querySelector(`.explorer-handle[data-x="${focused}"]`)?.focus();
    const table = this.box.querySelector('.explorer-numbers');
    table.replaceChildren(...Object.entries(numbers).map(([name, text]) => {
      const row = document.createElement('div');
      row.append(Object.assign(document.createElement('dt'), { textContent: name }));
      const value = Object.assign(document.createElement('dd'), { textContent: text });
      value.dataset.name = name;
      row.append(value);
      return row;
    }));
    this.box.querySelector('.explorer-files').replaceChildren(...files.flatMap((name) => {
      const button = Object.assign(document.createElement('button'), { type: 'button', textContent: `Save ${name}` });
      button.dataset.file = name;
      return [' ', button];
    }));
    let moved = false;
    for (const [name, [low, high]] of Object.entries(limits)) {
      const control = this.controls.get(name);
      const before = control.value;
      control.min = low;
      control.max = high;
      moved ||= control.value !== before;
    }
    this.refresh();
    return moved;
  }

  pressed(event) {
    const button = event.target.closest('button, a[data-action]');
    if (!button) return;
    if (button.dataset.file) this.download(button.dataset.file);
    if (button.dataset.action === 'svg') {
      const name = this.spec.title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '');
      save(`${name}.svg`, standalone(this.box.querySelector('.explorer-picture svg')), 'image/svg+xml');
    }
    if (button.dataset.action === 'reset') {
      this.widen();
      for (const p of this.spec.parameters) this.set(p, p.kind === 'flag' ? p.value : String(p.value));
      this.changed();
    }
    if (button.dataset.action === 'link') {
      event.preventDefault();
      const url = this.address(location.href, true);
      history.replaceState(null, '', url);
      navigator.clipboard?.writeText(url).catch(() => {});
      this.say('The address of this page now describes this state (and is copied, where the browser allows it).');
    }
    if (button.dataset.action === 'play') this.play(button);
  }

  async download(name) {
    const { answer } = await ask(this.spec.target, this.args(), name);
    save(name, answer, 'application/json');
  }

  widen() {
    for (const p of this.spec.parameters) {
      const control = this.controls.get(p.name);
      if (control.type === 'range') { control.min = p.minimum; control.max = p.maximum; }
    }
  }

  // Takes this explorer's part of the address, if there is one.
  restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    const there = this.spec.parameters.filter((p) => state.has(`${this.key}.${p.name}`));
    if (there.length) this.widen();
    for (const p of there) this.set(p, state.get(`${this.key}.${p.name}`));
    return there.length > 0;
  }

  async play(button) {
    if (this.playing) { this.playing = false; return; }
    const control = this.controls.get(button.dataset.name);
    const label = button.getAttribute('aria-label');
    this.playing = true;
    button.textContent = '❚❚';
    button.setAttribute('aria-label', 'Pause');
    if (Number(control.value) >= Number(control.max)) control.value = control.min;
    while (this.playing && !this.failed) {
      this.changed();
      // The next step comes when this one is drawn, and not before it could be seen.
      do await new Promise((resolve) => setTimeout(resolve, 450)); while (this.busy);
      if (Number(control.value) >= Number(control.max)) break;
      control.value = Number(control.value) + Number(control.step);
    }
    this.playing = false;
    button.textContent = '▶';
    button.setAttribute('aria-label', label);
  }

  move(handle, x, y) {
    const [xLow, xHigh, xStart, xEnd, yLow, yHigh, yStart, yEnd] = handle.dataset.scales.split(' ').map(Number);
    this.controls.get(handle.dataset.x).value = xLow + (x - xStart) / (xEnd - xStart) * (xHigh - xLow);
    this.controls.get(handle.dataset.y).value = yLow + (y - yStart) / (yEnd - yStart) * (yHigh - yLow);
    this.changed();
  }

  drag(event) {
    const handle = event.target.closest('.explorer-handle');
    if (!handle) return;
    event.preventDefault();
    const follow = (move) => {
      // The drawing is replaced at every answer, so the transform is read anew.
      const matrix = this.box.querySelector('.explorer-picture svg').getScreenCTM().inverse();
      const point = new DOMPoint(move.clientX, move.clientY).matrixTransform(matrix);
      this.move(handle, point.x, point.y);
    };
    const stop = () => {
      removeEventListener('pointermove', follow);
      for (const name of ['pointerup', 'pointercancel']) removeEventListener(name, stop);
    };
    addEventListener('pointermove', follow);
    for (const name of ['pointerup', 'pointercancel']) addEventListener(name, stop);
  }

  nudge(event) {
    const handle = event.target.closest('.explorer-handle');
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!handle || !step) return;
    event.preventDefault();
    this.move(handle, Number(handle.getAttribute('cx')) + 8 * step[0], Number(handle.getAttribute('cy')) + 8 * step[1]);
  }
}

function wideAddress() {
  return new URL(`${document.documentElement.dataset.content_root ?? './'}chapters/explorers/index.html`, location.href).href;
}

// Python starts a little before an explorer comes into view.
const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    target.explorer.redraw();
  }
}, { rootMargin: '1500px 0px' });

// A reader who comes to an explorer after a moment finds Python running, unless the browser was told to save data.
const early = () => setTimeout(() => { if (!navigator.connection?.saveData) start().catch(() => {}); }, 500);
if (document.readyState === 'complete') early();
else addEventListener('load', early);

addEventListener('hashchange', () => {
  for (const { explorer } of document.querySelectorAll('.explorer')) {
    if (explorer.restore()) explorer.changed();
  }
});

let shown = null;
for (const [index, box] of document.querySelectorAll('.explorer').entries()) {
  box.explorer = new Explorer(box, index);
  if (box.explorer.restored) {
    box.explorer.redraw();
    shown ??= box;
  } else seen.observe(box);
}
// An address that describes an explorer leads to it.
shown?.scrollIntoView();
