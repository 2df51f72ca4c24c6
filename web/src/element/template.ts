/** What stands in the element's own tree. Its words are English; the button's can be slotted. */
import viewerStyle from "../viewer.css?inline";
import elementStyle from "./element.css?inline";

const TREE = `
<div class="stage" part="stage" lang="en">
  <div id="viewer" class="viewer alone" part="viewer">
    <canvas id="photo" part="photo" role="img" aria-label="The photo"></canvas>
    <canvas id="stylised" part="stylised" role="img"></canvas>
    <div id="divider" class="divider" part="divider" role="slider" tabindex="0"
      aria-label="Divider: the photo on its left, the stylised picture on its right"
      aria-valuemin="0" aria-valuemax="100" aria-valuenow="50">
      <span class="knob" part="knob" aria-hidden="true"></span>
    </div>
  </div>
  <button id="camera" type="button" part="button" hidden><span id="off"><slot name="start">Camera</slot></span><span id="on" hidden><slot name="stop">Stop</slot></span></button>
  <div id="loading" class="loading" part="loading" hidden>
    <progress id="loading-bar" aria-label="Loading"></progress>
    <span id="loading-text"></span>
  </div>
</div>
<p id="message" class="message" part="message" role="status" lang="en"></p>`;

let sheet: CSSStyleSheet | null = null; // one for all elements

/** A fresh tree. Its style is a sheet made by script, which a page's policy needs not allow. */
export function plant(root: ShadowRoot): void {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(elementStyle + viewerStyle);
  }
  root.adoptedStyleSheets = [sheet];
  root.innerHTML = TREE;
}
