/** The photo view's controls: camera, pictures, mirror, save. */
import { Camera } from "./camera";
import { $, pressed, reason, say } from "./dom";
import { fetchFile } from "./fetch";
import type { LiveLoop } from "./live_loop";
import { onPictureInput } from "./picture_input";
import { savePng } from "./save";
import { Picture } from "./sources";
import type { Viewer } from "./viewer";

export class PhotoControls {
  private readonly camera = new Camera();
  private sample: Blob | null = null;

  constructor(
    private readonly live: LiveLoop,
    private readonly viewer: Viewer,
    private readonly example: string,
    private readonly style: () => string,
    private readonly leaveSketch: () => void,
  ) {
    $("camera").addEventListener("click", () => this.toggleCamera());
    $("flip").addEventListener("click", () => this.flip());
    $("mirror").addEventListener("click", () => this.setMirror(!this.live.mirror));
    $("example").addEventListener("click", () => this.showExample());
    $("save").addEventListener("click", () => this.save());
    onPictureInput((file) => this.showFile(file));
    // The canvas of a tab that was in the background would else keep an old frame.
    document.addEventListener("visibilitychange", () => document.hidden || this.live.again());
  }

  /** Fetched once: the camera must stop even where the server has gone. */
  async showExample(): Promise<void> {
    try {
      this.sample ??= await fetchFile(this.example);
    } catch (error) {
      this.live.use(null);
      this.label();
      return say(reason(error));
    }
    await this.showFile(this.sample, "the example");
  }

  /** Where the user has allowed it before; else a button asks. */
  async startIfAllowed(): Promise<void> {
    const name = "camera" as PermissionName;
    const permission = await navigator.permissions?.query({ name }).catch(() => null);
    if (permission?.state === "granted" && !this.live.camera) await this.openCamera();
  }

  private async showFile(file: Blob, name = (file as File).name): Promise<void> {
    try {
      this.leaveSketch();
      const picture = await Picture.read(file);
      say("");
      this.setMirror(false);
      this.live.use(picture);
      this.label();
    } catch {
      say(`${name || "The file"}: no picture this browser can read. Try a JPEG, PNG or WebP file.`);
    }
  }

  private async toggleCamera(): Promise<void> {
    if (this.live.camera) await this.showExample();
    else await this.openCamera();
  }

  private async openCamera(): Promise<void> {
    try {
      const video = await this.camera.open(() => this.lost());
      say("");
      this.setMirror(this.camera.front);
      this.live.use(video);
    } catch (error) {
      say(reason(error));
    }
    $("flip").hidden = !this.camera.several;
    this.label();
  }

  private async flip(): Promise<void> {
    this.camera.flip();
    await this.showExample(); // phones open one camera at a time
    await this.openCamera();
  }

  private async lost(): Promise<void> {
    await this.showExample();
    say("The camera was disconnected. Pictures work without it.");
  }

  private setMirror(on: boolean): void {
    this.live.mirror = on;
    pressed($("mirror"), on);
    this.live.again();
  }

  private label(): void {
    const text = this.live.camera ? "Stop" : "Camera";
    $("camera").querySelector("span")!.textContent = text;
  }

  private save(): void {
    savePng(this.viewer.picture(), this.style()).catch((error) => say(reason(error)));
  }
}
