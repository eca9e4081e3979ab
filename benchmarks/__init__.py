"""Speed of the operators beside onnxruntime, PyTorch, OpenVINO and NumPy: python -m benchmarks."""
