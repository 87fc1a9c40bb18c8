// The filter of the ledger: hides the rows that do not match, and the chapters without rows.

const form = document.querySelector(".ledger-filter");
const rows = [...document.querySelectorAll(".ledger-row")].map((row) => ({
  row,
  // Formulas are left out: their text is not what a reader types.
  words: [...row.querySelectorAll(":scope > .ledger-name, .ledger-facts")].map((part) => part.textContent).join(" ").toLowerCase() + " " + row.id,
}));
const chapters = [...document.querySelectorAll(".ledger-chapter")];
const [text, output] = [form.querySelector("input"), form.querySelector("output")];
const choices = [...form.querySelectorAll("select")];

function filter() {
  const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { row, words } of rows) {
    const good = wanted.every((word) => words.includes(word)) && choices.every((c) => !c.value || row.classList.contains(c.value));
    row.hidden = !good;
    count += good;
  }
  for (const chapter of chapters) chapter.hidden = !chapter.querySelector(".ledger-row:not([hidden])");
  output.textContent = `${count} of ${rows.length}`;
}

text.value = new URLSearchParams(location.search).get("find") ?? "";
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
filter();
