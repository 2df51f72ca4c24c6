// The public API of Core ML that the snippet uses, for a compiler without Apple's frameworks.
public final class CVPixelBuffer {}
public final class MLMultiArray {}

public struct MLFeatureValue {
  public init(pixelBuffer: CVPixelBuffer) {}
  public init(multiArray: MLMultiArray) {}
  public var imageBufferValue: CVPixelBuffer? { nil }
  public var multiArrayValue: MLMultiArray? { nil }
}

public protocol MLFeatureProvider {
  func featureValue(for name: String) -> MLFeatureValue?
}

public struct MLDictionaryFeatureProvider: MLFeatureProvider {
  public init(dictionary: [String: Any]) throws {}
  public func featureValue(for name: String) -> MLFeatureValue? { nil }
}

public final class MLModel {
  public func prediction(from input: MLFeatureProvider) throws -> MLFeatureProvider { input }
}
