/** Opens cameras, and says in plain words why one did not open. */
import { CameraVideo } from "./sources";
import { strings } from "./strings";

// As fine as most cameras give 30 times a second: the photo guides what is shown.
const IDEAL = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30 } };

const { insecure, refused, none, busy, other } = strings.camera;
/** By the names that browsers give to what goes wrong. */
const EXPLAINED: Record<string, string> = {
  NotAllowedError: refused,
  SecurityError: refused,
  NotFoundError: none,
  OverconstrainedError: none,
  NotReadableError: busy,
};

export class Camera {
  /** Whether the picture is to be mirrored, as people know themselves. */
  front = true;
  private facing: "user" | "environment" = "user";
  private device = "";
  private cameras: string[] = [];

  get several(): boolean {
    return this.cameras.length > 1;
  }

  /**
   * Throws an Error whose message says what is wrong and what helps. Once `signal` is aborted, even
   * while the browser still asks for permission, the device is off again.
   */
  async open(signal: AbortSignal): Promise<CameraVideo> {
    if (!navigator.mediaDevices?.getUserMedia) throw new Error(insecure);
    let stream: MediaStream | null = null;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: this.wanted() });
      signal.throwIfAborted();
      await this.look(stream.getVideoTracks()[0]);
      const video = Object.assign(document.createElement("video"), {
        muted: true,
        playsInline: true,
        srcObject: stream,
      });
      await video.play();
      signal.throwIfAborted();
      return new CameraVideo(video, stream);
    } catch (error) {
      for (const track of stream?.getTracks() ?? []) track.stop();
      const { name } = error as DOMException;
      throw new Error(EXPLAINED[name] ?? other(name), { cause: error });
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
