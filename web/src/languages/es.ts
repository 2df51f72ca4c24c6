import type { PageWords, Strings } from "./en";

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1).replace(".", ",");
const minutes = (seconds: number) =>
  `${Math.floor(seconds / 60)}:${String(Math.floor(seconds) % 60).padStart(2, "0")}`;
const PICTURES = "Las imágenes funcionan sin ella.";

export const spanish: Strings = {
  camera: {
    insecure: `Los navegadores solo dan la cámara a páginas https y a localhost. Inicie distill.lens con https=true. ${PICTURES}`,
    refused: `Se denegó la cámara. Permítala en los ajustes del navegador para esta página y pulse Cámara otra vez. ${PICTURES}`,
    none: `No se encontró ninguna cámara. ${PICTURES}`,
    busy: `No se puede leer la cámara: quizá la usa otro programa. ${PICTURES}`,
    other: (name) => `La cámara no arrancó (${name}). ${PICTURES}`,
    lost: `La cámara se desconectó. ${PICTURES}`,
    stalled: "La cámara no da imágenes en este momento. La página lo intenta de nuevo por sí sola.",
    start: "Cámara",
    stop: "Parar",
  },
  files: {
    example: "el ejemplo",
    unnamed: "El archivo",
    noPicture: (name) =>
      `${name}: no es una imagen que este navegador pueda leer. Pruebe con JPEG, PNG o WebP.`,
    noVideo: (name) =>
      `${name}: este navegador no puede reproducir el vídeo. Pruebe con un archivo MP4 o WebM.`,
    missing: (name, why) => `${name} no ha llegado: ${why}`,
    silent: "el servidor no responde",
    broken: "se cortó la conexión",
    status: (status) => `el servidor responde ${status}`,
    noFile: "el navegador no pudo hacer un archivo",
    incomplete: (why) => `Los archivos de la página no están completos: ${why}`,
  },
  network: {
    noWorker: "una parte de la página no se cargó; recárguela",
    cannotRun: (name, side, why) => `${name} no funciona a ${side}: ${why}.`,
    again: "La página lo intenta de nuevo por sí sola.",
    noStudent: "no hay ninguna red abierta",
    notFinite: "su salida no es finita",
    terms: (name, licence) => `Condiciones de ${name}: ${licence}.`,
  },
  part: {
    missing: {
      people: (why) => `No se puede distinguir a las personas del fondo: ${why}. Se dibuja todo.`,
      faces: (why) => `No se pueden distinguir los rostros: ${why}. Se dibuja todo.`,
    },
    noFace: "No se encontró ningún rostro en esta imagen: queda como está.",
  },
  own: {
    refused: (name, why) => `${name} no puede ser un estilo: ${why}.`,
    unreadable: "no es una red ONNX, o es una que ONNX Runtime no ejecuta en el navegador",
    inputs: (count) => `tiene ${count} entradas, se quiere una: la imagen`,
    otherInput: (type, shape) =>
      `su entrada es ${type} ${shape}, se quiere float32 1 × 3 × alto × ancho`,
    otherOutput: (type, shape) =>
      `su salida es ${type} ${shape}, se quiere float32 del tamaño de la imagen, con 3 o 4 canales`,
    range: (low, high) =>
      `da valores de ${low.toPrecision(3)} a ${high.toPrecision(3)}, se quiere RGB en [0, 1] a la entrada y a la salida`,
  },
  backend: {
    wasm: (threads) => `WASM, ${threads} ${threads === 1 ? "hilo" : "hilos"}`,
    reason: (where, why) => `${where}: ${why}.`,
    asked: "como pide la dirección",
    emulated: "como pide la dirección; emulado en la CPU",
    card: "en la tarjeta gráfica",
    failed: (why) => `WebGPU falló (${why})`,
    needsHttps: "WebGPU necesita una página abierta por https",
    noWebGpu: "este navegador no tiene WebGPU",
    noCard: "no hay tarjeta gráfica para WebGPU",
    onlyEmulated: "aquí WebGPU solo está emulado",
    oneThreadHttps: "no hay más hilos, porque la página no se abrió por https",
    oneThreadHeaders: "no hay más hilos, porque este servidor no envía cabeceras COOP/COEP",
  },
  film: {
    start: "Grabar",
    stop: (seconds) =>
      `Parar ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`,
    silent: "El vídeo no tiene sonido: se denegó el micrófono, o no hay ninguno.",
    notStarted: (why) => `El vídeo no empezó: ${why}`,
    failed: "el navegador no pudo continuar el vídeo",
  },
  video: {
    draw: "Guardar película",
    cancel: "Cancelar",
    progress: (percent, left) =>
      left === null ? `${percent} %` : `${percent} % · faltan ${minutes(left)}`,
    done: (frames, silent) =>
      `La película está guardada: ${frames} ${frames === 1 ? "imagen" : "imágenes"}${silent ? ", sin sonido: este navegador no puede conservarlo" : ""}.`,
    failed: (why) => `La película no se dibujó: ${why}.`,
    unreadable: "este navegador no puede leer el vídeo imagen por imagen",
    unwritable: "este navegador no puede escribir películas",
  },
  full: {
    save: "Guardar",
    cancel: "Cancelar: la imagen no se guarda",
    done: (width, height) => `La imagen se ha guardado a ${width} × ${height}.`,
    failed: (why) => `La imagen no se ha guardado: ${why}.`,
  },
  loop: {
    start: "Bucle",
    left: (seconds) => `${seconds.toFixed(1).replace(".", ",")} s`,
    done: "El bucle está guardado como archivo GIF.",
    failed: "el navegador no pudo hacer un archivo GIF con él",
  },
  copied: "La imagen está en el portapapeles.",
  linkCopied: "En el portapapeles hay un enlace a esta página con estos ajustes.",
  updated: "Esta página es una versión nueva de la que tenía.",
  forgotten: "Se han olvidado los ajustes.",
  percent: (count) => `${count} %`,
  pen: { down: "Lápiz apoyado.", up: "Lápiz levantado." },
  divider: (percent) => `${percent} % foto`,
  pixels: (count) => `${count} px`,
  automatic: (count) => `Automática (${count} px)`,
  speed: (fps, ms) => `${fps} FPS · ${ms}`,
  milliseconds: (ms) => `${ms} ms`,
  asking: "cargando …",
  loading: (loaded, total) =>
    total === null ? `${megabytes(loaded)} MB` : `${megabytes(loaded)} de ${megabytes(total)} MB`,
};

export const spanishPage: PageWords = {
  Mode: "Vista",
  Photo: "Foto",
  Sketch: "Dibujo",
  "The network runs on:": "La red funciona en:",
  "starting …": "iniciando …",
  "Loading the network": "Cargando la red",
  "Photo, live": "Foto, en directo",
  "The photo": "La foto",
  "The stylised photo": "La foto estilizada",
  photo: "foto",
  "Divider: the photo on its left, the stylised picture on its right":
    "Divisor: a la izquierda la foto, a la derecha la imagen estilizada",
  Speed: "Velocidad",
  Picture: "Imagen",
  Camera: "Cámara",
  Flip: "Girar",
  Freeze: "Congelar",
  "Freeze: the camera's picture stays, and is drawn as finely as the screen shows":
    "Congelar: la imagen de la cámara se queda y se dibuja tan fina como la muestra la pantalla",
  Mirror: "Espejo",
  Compare: "Comparar",
  "Compare: the photo beside the stylised picture":
    "Comparar: la foto junto a la imagen estilizada",
  Record: "Grabar",
  Loop: "Bucle",
  "Loop: two seconds as a GIF that plays there and back":
    "Bucle: dos segundos como GIF que va y vuelve",
  "Save film": "Guardar película",
  "Draw every frame of the video and save the film":
    "Dibujar cada imagen del vídeo y guardar la película",
  "Drawing the film": "Se dibuja la película",
  "Drawing the picture at its full size": "Se dibuja la imagen a tamaño completo",
  Open: "Abrir",
  "Open a picture, a video or a network": "Abrir una imagen, un vídeo o una red",
  "Open a picture, a video or an .onnx network: also dropped or pasted":
    "Abrir una imagen, un vídeo o una red .onnx: también al soltarlos o pegarlos",
  Example: "Ejemplo",
  Save: "Guardar",
  "Save the stylised picture": "Guardar la imagen estilizada",
  Share: "Enviar",
  Copy: "Copiar",
  "Copy what is shown": "Copiar lo que se ve",
  "Copy what is shown (Ctrl+C)": "Copiar lo que se ve (Ctrl+C)",
  "Picture, video, or network as an ONNX file": "Imagen, vídeo, o red como archivo ONNX",
  Paper: "Papel",
  "Your sketch": "Su dibujo",
  "Draw with mouse, finger or pen. By keyboard: the arrow keys move the pen, with Shift further; Space puts it down and lifts it.":
    "Dibuje con ratón, dedo o lápiz. Con el teclado: las flechas mueven el lápiz, con Mayús más lejos; la barra espaciadora lo apoya y lo levanta.",
  "your lines": "sus líneas",
  "The picture made of your lines": "La imagen hecha de sus líneas",
  "Draw on the left, or trace the outline.": "Dibuje a la izquierda, o calque el contorno.",
  "Sketch tools": "Útiles de dibujo",
  Pen: "Lápiz",
  Eraser: "Goma",
  Undo: "Deshacer",
  Redo: "Rehacer",
  Clear: "Borrar",
  Outline: "Contorno",
  "Save the sticker as a PNG file": "Guardar la pegatina como archivo PNG",
  Settings: "Ajustes",
  Style: "Estilo",
  Resolution: "Resolución",
  Draw: "Dibujar",
  Everything: "Todo",
  People: "Personas",
  Background: "Fondo",
  Faces: "Rostros",
  Strength: "Fuerza",
  Steadiness: "Calma",
  "Save as": "Guardar como",
  "JPEG quality": "Calidad JPEG",
  "Save the photo beside it": "Guardar la foto al lado",
  "Save at full size": "Guardar a tamaño completo",
  "Record with sound": "Grabar con sonido",
  "Line width": "Grosor",
  "Everything runs in this browser. No picture leaves it.":
    "Todo funciona en este navegador. Ninguna imagen sale de él.",
  "Copy a link to this": "Copiar un enlace a esto",
  "Forget my settings": "Olvidar mis ajustes",
  "Open-source licences": "Licencias de código abierto",
  "Drop it here": "Suéltelo aquí",
};
