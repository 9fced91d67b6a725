"""Hidden checks and controls of lesson 14: export, ONNX and AOTInductor."""
