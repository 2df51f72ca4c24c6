/** A cat's face to trace, in a square of side 1. */
const CAT = [
  "M.27 .42 C.22 .30 .20 .19 .21 .12 C.29 .14 .36 .20 .41 .27 C.47 .25 .53 .25 .59 .27",
  "C.64 .20 .71 .14 .79 .12 C.80 .19 .78 .30 .73 .42 C.80 .52 .79 .66 .70 .75",
  "C.60 .84 .40 .84 .30 .75 C.21 .66 .20 .52 .27 .42 Z",
  "M.34 .50 C.37 .45 .43 .45 .45 .51 C.42 .55 .37 .55 .34 .50 Z",
  "M.66 .50 C.63 .45 .57 .45 .55 .51 C.58 .55 .63 .55 .66 .50 Z",
  "M.46 .61 L.54 .61 L.50 .66 Z M.50 .66 C.49 .71 .44 .72 .41 .69 M.50 .66 C.51 .71 .56 .72 .59 .69",
  "M.33 .64 L.14 .60 M.33 .68 L.15 .71 M.67 .64 L.86 .60 M.67 .68 L.85 .71",
].join(" ");

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
  context.stroke(new Path2D(CAT));
  context.restore();
}
