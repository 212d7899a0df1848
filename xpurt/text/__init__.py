"""Text that commands print and write: plain tables, sections of Markdown pages."""
