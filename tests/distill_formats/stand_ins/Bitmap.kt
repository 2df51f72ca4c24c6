// The public API of Android's Bitmap that the snippet uses, with the same arithmetic on the JVM.
package android.graphics

class Bitmap private constructor(private val colors: IntArray, val width: Int) {
    enum class Config { ARGB_8888 }

    fun getPixels(pixels: IntArray, offset: Int, stride: Int, x: Int, y: Int, width: Int, height: Int) {
        for (row in 0 until height) for (column in 0 until width)
            pixels[offset + row * stride + column] = colors[(y + row) * this.width + x + column]
    }

    companion object {
        @JvmStatic
        fun createBitmap(colors: IntArray, width: Int, height: Int, config: Config): Bitmap {
            require(colors.size == width * height && config == Config.ARGB_8888)
            return Bitmap(colors.copyOf(), width)
        }
    }
}
