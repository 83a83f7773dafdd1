# SPDX-License-Identifier: BSD-3-Clause
# Debian's packages are built, and with --long used, in a Debian made for that; of the
# RPMs, only the specification is read. For sourcing by ./check.
stage packages touched '^. (debian/|packaging/|tests/packages/|deps\.txt|m4/ulnet_lto|tools/lnetd\.service)'

# Debugging information says of code that was made at the link of a library (--enable-lto)
# that its language is GIMPLE.
made_at_link() {
	local name

	for name in "$SRC"/debian/*.symbols; do
		name=$(basename "$name" 0.symbols)
		readelf --debug-dump=info --dwarf-depth=1 \
			"$BUILD/packages/ulnet/build-deb/.libs/$name.so" |
			grep "DW_AT_producer.*GNU GIMPLE" >/dev/null || {
			echo "$name: not optimised as a whole"
			return 1
		}
	done
}

# Lintian's errors and warnings.
run_lintian() {
	lintian --allow-root --fail-on error,warning "$BUILD"/packages/*.changes
}

boot_lnetd() {
	"$SRC/tests/vm/vm-run" --mem 2000 --timeout 600 -- \
		"$SRC/tests/packages/boot.sh" "$BUILD/packages/root"
}

stage_packages() {
	local test=$SRC/tests/packages

	"$SRC/scripts/install_deps" packages || {
		skip "Debian packages" "no tools for them"
		return 0
	}
	step "specification of RPMs" rpmspec -P "$SRC/packaging/ulnet.spec" || true
	step "Debian packages" "$test/build.sh" "$SRC" "$BUILD/packages" || return 0
	step "lintian" run_lintian || true
	step "libraries are optimised as a whole" made_at_link || true
	[ $long = yes ] || return 0
	if [ "$(id -u)" != 0 ]; then
		skip "in a clean root" "takes root"
		return 0
	fi
	step "in a clean root" "$test/root.sh" "$SRC" "$BUILD/packages" || return 0
	"$SRC/scripts/install_deps" vm || {
		skip "lnetd.service under systemd" "no virtual machines"
		return 0
	}
	step "lnetd.service under systemd" boot_lnetd || true
}
