const shown = 120; // values, of two minutes

// A Plot shows the last values of a measure as a line, above zero.
export class Plot {
  constructor(parent, title, format) {
    this.format = format;
    this.values = [];
    const figure = document.createElement("figure");
    const caption = figure.appendChild(document.createElement("figcaption"));
    caption.append(title);
    this.newest = caption.appendChild(document.createElement("b"));
    const svg = figure.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
    svg.setAttribute("viewBox", `0 0 ${shown - 1} 100`);
    svg.setAttribute("preserveAspectRatio", "none");
    this.path = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
    parent.append(figure);
  }

  // add adds the newest value. If it is undefined, the line has a gap.
  add(value) {
    this.values = [...this.values, value].slice(-shown);
    const known = this.values.filter((v) => v !== undefined);
    const highest = Math.max(0, ...known), top = highest || 1;
    this.newest.textContent = (this.format(value) ?? "–") + (known.length ? `, highest ${this.format(highest)}` : "");
    const left = shown - this.values.length;
    let pen = "M";
    const steps = this.values.map((v, i) => {
      if (v === undefined) return (pen = "M"), "";
      const step = `${pen}${left + i} ${98 - (96 * v) / top}${pen === "M" ? "h0" : ""}`; // h0: a lone value is a dot
      pen = "L";
      return step;
    });
    this.path.setAttribute("d", steps.join(" "));
  }
}
