# SPDX-License-Identifier: BSD-3-Clause
# Sourced by bench/run: clients that fail at the same moment. Computed, so that one run
# is enough.

herd_measure() {
	"$bin/herd" >"$BUILD/bench-herd.md"
	cat "$BUILD/bench-herd.md"
}
