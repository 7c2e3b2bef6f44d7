// fill shows rows in a table. A column is [title, text of a row] or, for a button, [title, text of the
// button, press]: press has the functions of a row key, label, disabled and press. The button that has
// the focus keeps it.
export function fill(table, columns, rows) {
  const head = table.tHead ?? table.createTHead();
  if (!head.rows.length) {
    const tr = head.insertRow();
    for (const [title] of columns) tr.append(element("th", title));
  }
  const body = table.tBodies[0] ?? table.createTBody();
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  body.replaceChildren(...rows.map((row) => {
    const tr = document.createElement("tr");
    if (row.near) tr.className = "near";
    for (const [, text, press] of columns) {
      const td = tr.insertCell();
      if (!press) {
        td.textContent = text(row) ?? "–";
        continue;
      }
      const button = element("button", text(row));
      button.dataset.key = press.key(row);
      button.ariaLabel = press.label(row);
      button.disabled = press.disabled(row);
      button.onclick = () => press.press(row);
      td.append(button);
    }
    return tr;
  }));
  if (focused) body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

// sortable makes the titles of columns buttons that choose the order. values holds, for each
// column, a function of a row to sort by, or nothing if the column cannot be chosen. The returned
// function sorts rows by the chosen column.
export function sortable(table, columns, values, changed) {
  let column = 0, ascending = true;
  const tr = table.createTHead().insertRow();
  const cells = columns.map(([title], i) => {
    if (!values[i]) return element("th", title);
    const th = document.createElement("th");
    const button = th.appendChild(element("button", title));
    button.onclick = () => {
      ascending = column === i ? !ascending : true;
      column = i;
      show();
      changed();
    };
    return th;
  });
  const show = () => cells.forEach((th, i) => (th.ariaSort = i !== column ? null : ascending ? "ascending" : "descending"));
  tr.append(...cells);
  show();
  return (rows) => {
    const value = values[column];
    return rows.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (ascending ? 1 : -1));
  };
}

function element(name, text) {
  const e = document.createElement(name);
  e.textContent = text;
  return e;
}

// The functions below format numbers. Each returns undefined for undefined.

// number shows two digits of a small number, and no fraction of a large one.
export const number = (n) => n?.toLocaleString("en", n < 100 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 0 });

export function bytes(n) {
  if (n === undefined) return undefined;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = n < 1 ? 0 : Math.min(Math.floor(Math.log2(n) / 10), units.length - 1);
  return `${number(n / 1024 ** power)} ${units[power]}`;
}

export function seconds(s) {
  if (s === undefined) return undefined;
  if (s < 1) return `${number(s * 1000)} ms`;
  if (s < 120) return `${number(s)} s`;
  return s < 7200 ? `${number(Math.floor(s / 60))} min` : `${number(Math.floor(s / 3600))} h`;
}
