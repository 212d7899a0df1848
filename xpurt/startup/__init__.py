"""What `import xpurt` does before anything else: libraries, extension, accelerator.

Its modules are imported by name: `accelerator` needs what `extension` loads.
"""
