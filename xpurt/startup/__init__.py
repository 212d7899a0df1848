"""The first steps of `import xpurt`: libraries, extension, accelerator.

Its modules are imported by name: `accelerator` needs what `extension` loads.
"""
