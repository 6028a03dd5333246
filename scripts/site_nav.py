"""Lists the pages of folders in the navigation of the site (mkdocs.yml): "docs/imports/", "lessons/*/"."""

from pathlib import Path


def pages_in(root, folder):
    """Pages of the folders that the pattern names, those that list the others first."""
    pages = [p for f in sorted(root.glob(folder)) for p in sorted(f.glob("*.md"))]
    pages.sort(key=lambda p: (p.name != "README.md" or p.parent != root / folder))
    return [p.relative_to(root).as_posix() for p in pages]


def expand(entries, root):
    out = []
    for entry in entries:
        if isinstance(entry, dict):
            out.append({k: expand(v, root) if isinstance(v, list) else v for k, v in entry.items()})
        elif entry.endswith("/"):
            out += pages_in(root, entry)
        else:
            out.append(entry)
    return out


def on_config(config):
    config.nav = expand(config.nav, Path(config.docs_dir))
    return config
