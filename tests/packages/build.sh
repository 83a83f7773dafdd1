#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# build.sh TREE DIR: the Debian packages of a copy of the tree, in DIR.
set -euo pipefail

tree=$1 dir=$2
rm -rf "$dir" && mkdir -p "$dir/ulnet"
if [ -e "$tree/.git" ]; then
	git -C "$tree" ls-files -z --cached --others --exclude-standard
else
	(cd "$tree" && find . -type f ! -path './build*' -print0)
fi | tar c -C "$tree" --null -T - | tar x -C "$dir/ulnet"
cd "$dir/ulnet"
DEB_BUILD_OPTIONS="parallel=$(nproc)" dpkg-buildpackage -us -uc
