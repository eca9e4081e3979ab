"""The pipeline from specs/ through templates/ to generated/.

source -> structure -> resolve -> lint -> plan -> render -> output, driven by cli. model is what a spec may say, expr
the constraint language, diagnostics what all of them speak.
"""
