// A click on a column's head sorts its table by it, numbers by their size; a second click turns the order round.
document.addEventListener("click", (event) => {
  const head = event.target.closest(".sortable th");
  if (!head) return;
  const heads = [...head.parentNode.children], column = heads.indexOf(head);
  const up = head.getAttribute("aria-sort") !== "ascending";
  heads.forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const body = head.closest("table").tBodies[0];
  const key = (row) => {
    const text = row.cells[column].textContent.trim(), value = parseFloat(text.replace("\u2212", "-"));
    return Number.isNaN(value) ? text : value;
  };
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * order(key(a), key(b))));
});
