"use strict";
// Tables sort by a button in each heading and are searched as one types. Without this script they are read as they stand.
(() => {
  const key = (row, column) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? (cell.dataset.value === "" ? null : Number(cell.dataset.value)) : cell.textContent.trim();
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));

  function sortBy(table, heading) {
    const column = heading.cellIndex;
    const first = heading.classList.contains("number") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const direction = heading.getAttribute("aria-sort") === first ? other : first;
    for (const h of table.tHead.rows[0].cells) h.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
    rows.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  function search(table, words, status) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((w) => text.includes(w));
      shown += !row.hidden;
    }
    status.textContent = wanted.length ? `${shown} of ${table.tBodies[0].rows.length} rows` : "";
  }

  for (const box of document.querySelectorAll(".table")) {
    const table = box.querySelector("table");
    const rows = table.tBodies[0].rows.length;
    if (rows < 2) continue;
    for (const heading of table.tHead.rows[0].cells) {
      if (heading.classList.contains("bar-column")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sortBy(table, heading));
      heading.append(button);
    }
    if (rows < 12) continue;
    const label = document.createElement("label");
    const input = document.createElement("input");
    const status = document.createElement("span");
    const tools = document.createElement("div");
    input.type = "search";
    status.setAttribute("role", "status");
    status.className = "quiet";
    tools.className = "tools";
    label.append("Search", input);
    label.setAttribute("aria-label", `Search: ${table.caption.textContent.trim()}`);
    input.setAttribute("aria-label", `Search: ${table.caption.textContent.trim()}`);
    input.addEventListener("input", () => search(table, input.value, status));
    tools.append(label, status);
    box.prepend(tools);
  }

  // A stop for the keyboard only where there is something to scroll.
  const watch = new ResizeObserver((seen) => {
    for (const { target } of seen) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
  });
  for (const scroll of document.querySelectorAll(".scroll")) watch.observe(scroll);

  // On paper everything is open.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const d of closed) d.open = true;
  });
  addEventListener("afterprint", () => {
    for (const d of closed) d.open = false;
  });
})();
