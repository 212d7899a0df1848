"use strict";
// Sorting and filtering of the tables. Without JavaScript the tables are whole.

// A browser takes seconds to lay out thousands of rows, and a reader sees a few dozen.
const MOST_ROWS = 400;

for (const table of document.querySelectorAll("table[data-interactive]")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  let rows = [...body.rows].map(row => ({ row, text: row.textContent.toLowerCase() }));
  const compareTexts = new Intl.Collator("en", { numeric: true }).compare;

  const textOf = (row, column) => {
    const cell = row.cells[column];
    return (cell.querySelector("summary") ?? cell).textContent;
  };
  const numberOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value !== undefined
      ? Number(cell.dataset.value)
      : parseFloat(textOf(row, column).replaceAll(",", ""));
  };

  // Cells without a number stay at the end in both orders.
  const sortBy = (column, descending) => {
    const isNumber = heads[column].dataset.kind === "number";
    const sign = descending ? -1 : 1;
    const keyed = rows.map(each => ({
      each,
      key: isNumber ? numberOf(each.row, column) : textOf(each.row, column),
    }));
    keyed.sort((a, b) => {
      if (!isNumber) return sign * compareTexts(a.key, b.key);
      if (Number.isNaN(a.key) || Number.isNaN(b.key)) {
        return Number.isNaN(a.key) - Number.isNaN(b.key);
      }
      return sign * (a.key - b.key);
    });
    rows = keyed.map(({ each }) => each);
    const sorted = document.createDocumentFragment();
    for (const { row } of rows) sorted.append(row);
    body.append(sorted);
  };

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const descending = head.ariaSort === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.ariaSort = descending ? "descending" : "ascending";
      sortBy(column, descending);
      show();
    });
  });

  const controls = document.createElement("div");
  controls.className = "controls";
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Filter by text";
  search.setAttribute("aria-label", "Filter by text");
  controls.append(search);

  const choices = heads.flatMap((head, column) => {
    if (head.dataset.kind !== "choice") return [];
    const values = [...new Set(rows.map(each => textOf(each.row, column)))];
    if (values.length < 2) return [];
    const select = document.createElement("select");
    select.setAttribute("aria-label", head.textContent);
    select.append(new Option(`${head.textContent}: all`, ""));
    for (const value of values.sort(compareTexts)) select.append(new Option(value || "-", `=${value}`));
    controls.append(select);
    return [{ select, column }];
  });
  const count = document.createElement("output");
  const all = document.createElement("button");
  all.type = "button";
  all.textContent = "show all";
  controls.append(count, all);

  let most = MOST_ROWS;
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = choices.filter(({ select }) => select.value);
    let found = 0;
    for (const { row, text } of rows) {
      const fits = words.every(word => text.includes(word)) &&
        wanted.every(({ select, column }) => select.value === `=${textOf(row, column)}`);
      found += fits;
      row.hidden = !fits || found > most;
    }
    const total = `${rows.length.toLocaleString("en")} ${rows.length === 1 ? "row" : "rows"}`;
    const first = found > most ? `; the first ${most} are shown` : "";
    count.textContent = (found < rows.length ? `${found.toLocaleString("en")} of ` : "") + total + first;
    all.hidden = found <= most;
  };
  all.addEventListener("click", () => {
    most = Infinity;
    show();
  });
  search.addEventListener("input", show);
  for (const { select } of choices) select.addEventListener("change", show);
  show();
  table.closest(".table").prepend(controls);
}
