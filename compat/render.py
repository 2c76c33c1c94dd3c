"""The command line of an older tool: python render.py --config my-config.yaml [--out rendered.yaml]"""

import argparse
import sys


def main() -> None:
    parser = argparse.ArgumentParser(description="Render a config with resources as Kubernetes manifests.")
    parser.add_argument("--config", required=True, help="the config file")
    parser.add_argument("--out", help="where to write; default: <config>.rendered.yaml")
    given = parser.parse_args()
    try:
        from tfyard.cli.main import main as tfyard
    except ImportError as error:
        sys.exit(f"{error}; first: pip install -r requirements.txt")
    sys.argv = ["tfyard", "render", given.config, "--output", given.out or f"{given.config}.rendered.yaml"]
    tfyard()


if __name__ == "__main__":
    main()
