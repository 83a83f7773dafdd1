#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ulrpc_tutorial(7) shows the files of examples/tally/, examples/context.c, lines.c,
# names.c and several.c as they are, and the first ones are short.
set -uo pipefail
cd "${srcdir:-.}" || exit 1
dir=$(mktemp -d "${TMPDIR:-/tmp}/ulnet-tutorial.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT

bash tests/install/tutorial.sh files man/man7/ulrpc_tutorial.7 "$dir" &&
	diff -r "$dir" examples/tally || exit 1
bash tests/install/tutorial.sh shown "PROGRAM lines.c" man/man7/ulrpc_tutorial.7 |
	diff - examples/lines.c || exit 1
bash tests/install/tutorial.sh shown "PROGRAM names.c" man/man7/ulrpc_tutorial.7 |
	diff - examples/names.c || exit 1
bash tests/install/tutorial.sh shown "PROGRAM several.c" man/man7/ulrpc_tutorial.7 |
	diff - examples/several.c || exit 1
bash tests/install/tutorial.sh shown "PROGRAM context.c" man/man7/ulrpc_tutorial.7 |
	diff - examples/context.c || exit 1
lines=$(cat examples/tally/*.proto examples/tally/*.[ch] | wc -l)
echo "$lines lines"
[ "$lines" -gt 0 ] && [ "$lines" -lt 100 ]
