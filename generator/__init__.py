"""The pipeline from specs/ through templates/ to generated/.

source -> model -> lint (with expr) -> plan -> render -> output, driven by cli; diagnostics is what all of them speak.
"""
