// What is wider than its place scrolls by itself; whoever reads with the keyboard must be able to reach it.
const WIDE = 'mjx-container, div.math, .cell_output pre, .cell_output, .pst-scrollable-table-container, .highlight pre, .ledger-row';

function mark() {
  for (const box of document.querySelectorAll(WIDE)) {
    const wide = box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== 'visible';
    // Inside a box that scrolls already, the inner ones are within reach.
    if (wide && !box.hasAttribute('tabindex')) {
      box.tabIndex = 0;
      box.dataset.wide = '';
    } else if (!wide && 'wide' in box.dataset) {
      box.removeAttribute('tabindex');
      delete box.dataset.wide;
    }
  }
}

let later;
const soon = () => { clearTimeout(later); later = setTimeout(mark, 200); };
addEventListener('resize', soon);
addEventListener('toggle', soon, true);
addEventListener('load', () => (globalThis.MathJax?.startup?.promise ?? Promise.resolve()).then(mark));
