// What tests/browser asks of JupyterLab's page. Cells are named by their ids, as in the file.
window.looking = {
  // not the shell's current widget: nothing has been clicked, so nothing is current
  get panel() { return [...window.jupyterapp.shell.widgets("main")].find(one => one.content && one.content.widgets) },
  get cells() { return this.panel.content.widgets },
  get scrolled() { return this.panel.node.querySelector(".jp-WindowedPanel-outer") },
  find(id) { return this.cells.findIndex(cell => cell.model.id === id) },

  ready() {
    if (!window.jupyterapp.shell || !this.panel || !this.panel.context.isReady || !this.idle()) return false
    window.jupyterapp.shell.activateById(this.panel.id)
    return true
  },
  idle() {
    const session = this.panel.sessionContext && this.panel.sessionContext.session
    return Boolean(session && session.kernel && session.kernel.status === "idle")
  },

  start(command) {
    window.looked = ""
    window.jupyterapp.commands.execute(command).then(() => window.looked = "done", error => window.looked = `${error}`)
    return true
  },
  run(id) {
    this.panel.content.activeCellIndex = this.find(id)
    return this.start("notebook:run-cell")
  },
  write(id, text) { this.cells[this.find(id)].model.sharedModel.setSource(text) },

  show(id) {
    const cell = this.cells[this.find(id)]
    this.panel.content.activeCellIndex = this.find(id)
    cell.node.scrollIntoView({ block: "start" })
    return true
  },
  unfold(id) {
    const folded = [...this.cells[this.find(id)].node.querySelectorAll("details:not([open])")]
    for (const one of folded) one.open = true
    return folded.length
  },
  scroll(to) { this.scrolled.scrollTop = to },
  atEnd() {
    return this.cells[this.cells.length - 1].node.getBoundingClientRect().bottom <= this.scrolled.getBoundingClientRect().bottom
  },
  get box() {
    const { x, y, width, height } = this.panel.node.getBoundingClientRect()
    return { x, y, width, height }
  },

  // What was printed, by cell: kind of output, number of lines, the beginning.
  outputs() {
    return this.cells.filter(cell => cell.model.type === "code").flatMap(cell =>
      cell.model.sharedModel.getOutputs().map(output => {
        const data = output.data || {}
        const failure = output.output_type === "error" ? `${output.ename}: ${output.evalue}` : ""
        const text = [failure || output.text || data["text/plain"] || ""].flat().join("")
        const shown = data["text/html"] || data["image/svg+xml"] || data["image/png"] ? 0 : text.trimEnd().split("\n").length
        return { cell: cell.model.id, kind: output.name || output.output_type, lines: shown, text: text.slice(0, 300) }
      }))
  },

  // What cannot be read in that part of the notebook which is on the screen.
  problems() {
    const found = [], screen = this.scrolled.getBoundingClientRect()
    for (const cell of this.cells) {
      const at = cell.node.getBoundingClientRect()
      if (!cell.node.isConnected || at.bottom < screen.top || at.top > screen.bottom || at.height === 0) continue
      const say = (what, detail) => found.push([cell.model.id, what, String(detail)])
      for (const area of cell.node.querySelectorAll(".cm-scroller, .jp-RenderedMarkdown, .jp-OutputArea-output")) {
        const over = area.scrollWidth - area.clientWidth
        if (over > 1) say(area.matches(".cm-scroller") ? "code wider than the page" : "wider than the page", `${over} px`)
      }
      for (const text of cell.node.querySelectorAll(".jp-OutputArea-output pre")) {
        const lines = text.textContent.replace(/\n$/, "").split("\n").length
        const folded = Math.round(text.clientHeight / parseFloat(getComputedStyle(text).lineHeight)) - lines
        if (folded > 0) say("printed lines that do not fit", `${folded} folded`)
      }
      if (cell.node.querySelector(".jp-mod-outputsScrolled")) say("output in a box that scrolls", "")
      for (const image of cell.node.querySelectorAll(".jp-OutputArea-output img, .jp-RenderedMarkdown img")) {
        // "Image" is what JupyterLab writes where nothing was said
        if (["", "Image"].includes(image.alt)) say("image without alt text", image.outerHTML.slice(0, 80))
      }
      for (const drawing of cell.node.querySelectorAll(".jp-OutputArea-output svg, .jp-RenderedMarkdown svg")) {
        if (drawing.ownerSVGElement) continue
        if (!drawing.getAttribute("aria-label") && !drawing.querySelector("title")) say("drawing without a title", "")
        const heights = [...drawing.querySelectorAll("text")].map(text => text.getBoundingClientRect().height)
        if (heights.length && Math.min(...heights) < 9) say("letters lower than 9 px", Math.min(...heights).toFixed(1))
      }
    }
    return found
  },
}
