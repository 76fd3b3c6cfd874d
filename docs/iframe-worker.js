// Search in a site that is read from its folder: browsers start no worker there, so its script runs in a hidden frame.
if (location.protocol === "file:") window.Worker = class extends EventTarget {
  constructor(url) {
    super();
    this.frame = Object.assign(document.createElement("iframe"), { hidden: true });
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
    const script = Object.assign(inside.document.createElement("script"), { src: url });
    this.ready = new Promise(done => { script.onload = done; });
    inside.document.body.append(script);
  }
  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
  }
  terminate() { this.frame.remove(); }
};
