# SPDX-License-Identifier: BSD-3-Clause
# What clang says of every file. No code is made. For sourcing by ./check.
stage clang always

clang_opinion() {
	local flags

	flags=$(tree_make release -s --no-print-directory print-flags) || return 1
	cd "$BUILD/release" && find "$SRC" -path "$BUILD" -prune -o -name '*.c' \
		! -path '*/peers/*' ! -path '*/install/*' ! -path '*/tally/*' \
		! -path '*/ledger/*' -print0 |
		nice xargs -0 -n 8 -P "$JOBS" clang -fsyntax-only -Werror $flags
}

stage_clang() {
	release_build generated || return 0
	step "every file" clang_opinion || true
}
