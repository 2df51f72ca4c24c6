/** Opens cameras, and says in plain words why one did not open. */
import { Video } from "./sources";

const IDEAL = { width: { ideal: 640 }, height: { ideal: 480 }, frameRate: { ideal: 30 } };

export class Camera {
  /** Whether the picture is to be mirrored, as people know themselves. */
  front = true;
  private facing: "user" | "environment" = "user";
  private device = "";
  private cameras: string[] = [];

  get several(): boolean {
    return this.cameras.length > 1;
  }

  /** Throws an Error whose message says what is wrong and what helps. */
  async open(lost: () => void): Promise<Video> {
    if (!navigator.mediaDevices?.getUserMedia) throw new Error(explain("insecure"));
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ video: this.wanted() });
      const [track] = stream.getVideoTracks();
      track.addEventListener("ended", lost);
      await this.look(track);
      const video = Object.assign(document.createElement("video"), {
        muted: true,
        playsInline: true,
        srcObject: stream,
      });
      await video.play();
      return new Video(video);
    } catch (error) {
      throw new Error(explain((error as DOMException).name), { cause: error });
    }
  }

  /** The next time another camera: the other side of a phone, the next one of a computer. */
  flip(): void {
    const at = this.cameras.indexOf(this.device);
    this.device = this.device && this.cameras[(at + 1) % this.cameras.length];
    this.facing = this.facing === "user" ? "environment" : "user";
  }

  private wanted(): MediaTrackConstraints {
    if (this.device) return { ...IDEAL, deviceId: { exact: this.device } };
    return { ...IDEAL, facingMode: { ideal: this.facing } };
  }

  private async look(track: MediaStreamTrack): Promise<void> {
    const devices = await navigator.mediaDevices.enumerateDevices();
    this.cameras = devices.filter((d) => d.kind === "videoinput").map((d) => d.deviceId);
    const { facingMode, deviceId } = track.getSettings();
    this.device = facingMode ? "" : (deviceId ?? ""); // phones are asked by side, not by device
    this.front = facingMode !== "environment";
  }
}

function explain(name: string): string {
  const pictures = "Pictures work without it.";
  switch (name) {
    case "insecure":
      return `Browsers give the camera to https pages and to localhost only. Start distill.lens with https=true. ${pictures}`;
    case "NotAllowedError":
    case "SecurityError":
      return `The camera was refused. Allow it in the browser's settings for this page, then press Camera again. ${pictures}`;
    case "NotFoundError":
    case "OverconstrainedError":
      return `No camera was found. ${pictures}`;
    case "NotReadableError":
      return `The camera cannot be read: perhaps another program uses it. ${pictures}`;
    default:
      return `The camera did not start (${name}). ${pictures}`;
  }
}
