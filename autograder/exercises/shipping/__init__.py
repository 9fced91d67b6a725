"""Exercises of lesson 14: export, ONNX and AOTInductor."""
