// What Stylize.ts uses of Lens Studio's scripting API (developers.snap.com/lens-studio/api/lens-scripting), in our words.
declare function component(target: unknown): void;
declare function input(target: unknown, name: string): void;
declare function hint(text: string): (target: unknown, name: string) => void;
declare class vec3 { constructor(x: number, y: number, z: number); }
declare class Texture { readonly name: string; }
declare class MLAsset { readonly name: string; }
declare class Pass { baseTex: Texture; }
declare class Image { readonly mainPass: Pass; }
declare class SceneObject { createComponent(type: "MLComponent"): MLComponent; }
declare class BaseScriptComponent { readonly sceneObject: SceneObject; }
declare class Transformer { readonly inverted: unknown; }
declare class InputPlaceholder { texture: Texture; }
declare class OutputPlaceholder { readonly texture: Texture; }
declare class TransformerBuilder { setStretch(on: boolean): TransformerBuilder; build(): Transformer; }
declare class InputBuilder {
  setName(name: string): InputBuilder;
  setShape(shape: vec3): InputBuilder;
  setInputTexture(texture: Texture): InputBuilder;
  setTransformer(transformer: Transformer): InputBuilder;
  build(): InputPlaceholder;
}
declare class OutputBuilder {
  setName(name: string): OutputBuilder;
  setShape(shape: vec3): OutputBuilder;
  setOutputMode(mode: MachineLearning.OutputMode): OutputBuilder;
  build(): OutputPlaceholder;
}
declare class MLComponent {
  model: MLAsset;
  onLoadingFinished: () => void;
  build(placeholders: (InputPlaceholder | OutputPlaceholder)[]): void;
  getOutput(name: string): OutputPlaceholder;
  runScheduled(recurring: boolean, start: MachineLearning.FrameTiming, end: MachineLearning.FrameTiming): void;
}
declare namespace MachineLearning {
  enum FrameTiming { None, Update, LateUpdate, OnRender }
  enum OutputMode { Texture, Data }
  function createInputBuilder(): InputBuilder;
  function createOutputBuilder(): OutputBuilder;
  function createTransformerBuilder(): TransformerBuilder;
}
