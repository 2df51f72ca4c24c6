/** A face from the front, in a square of side 1: the example that a drawing starts from, and the outline to trace. */
const FACE = [
  "M.22 .52 C.164 .3 .231 .07 .5 .06 C.769 .07 .836 .3 .78 .52",
  "M.265 .45 C.287 .34 .332 .28 .388 .24 C.5 .28 .634 .27 .702 .3 C.724 .35 .735 .4 .735 .45",
  "M.254 .45 C.254 .66 .332 .86 .5 .87 C.668 .86 .746 .66 .746 .45",
  "M.248 .47 C.203 .45 .203 .56 .259 .6",
  "M.752 .47 C.797 .45 .797 .56 .741 .6",
  "M.31 .41 C.354 .385 .399 .385 .438 .405",
  "M.69 .41 C.646 .385 .601 .385 .562 .405",
  "M.321 .465 C.354 .435 .399 .44 .427 .465 C.399 .485 .354 .485 .321 .465",
  "M.679 .465 C.646 .435 .601 .44 .573 .465 C.601 .485 .646 .485 .679 .465",
  "M.394 .464 A.02 .02 0 1 1 .354 .464 A.02 .02 0 1 1 .394 .464",
  "M.646 .464 A.02 .02 0 1 1 .606 .464 A.02 .02 0 1 1 .646 .464",
  "M.472 .6 C.461 .63 .478 .64 .5 .64 C.522 .64 .539 .63 .528 .6",
  "M.399 .72 C.444 .705 .478 .7 .5 .71 C.522 .7 .556 .705 .601 .72 C.556 .765 .444 .765 .399 .72",
  "M.399 .72 C.455 .73 .545 .73 .601 .72",
  "M.388 .84 L.377 .92 C.276 .95 .142 .96 .052 1",
  "M.612 .84 L.623 .92 C.724 .95 .858 .96 .948 1",
];
const STEP = 0.01; // between the points of a line

/** Its lines as points x0, y0, x1, y1, … */
export function faceLines(): number[][] {
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  return FACE.map((line) => {
    path.setAttribute("d", line);
    const length = path.getTotalLength();
    const steps = Math.ceil(length / STEP);
    const points = Array.from({ length: steps + 1 }, (_, i) => path.getPointAtLength((i * length) / steps));
    return points.flatMap(({ x, y }) => [x, y]);
  });
}

/** Draw it over a whole square canvas: dashed, pale, no part of what the network sees. */
export function drawOutline(canvas: HTMLCanvasElement): void {
  const context = canvas.getContext("2d")!;
  const side = canvas.width;
  context.clearRect(0, 0, side, side);
  context.save();
  context.scale(side, side);
  context.strokeStyle = "#9fb4d6";
  context.lineWidth = 0.006;
  context.setLineDash([0.018, 0.012]);
  context.lineJoin = "round";
  context.stroke(new Path2D(FACE.join(" ")));
  context.restore();
}
