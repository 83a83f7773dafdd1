# Programs to be installed, each made in a folder of its own, and found in %D%/bin/ of
# the build. They use what is installed and nothing else: the public headers, and
# the libraries.
sbin_PROGRAMS =
bin_PROGRAMS =
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = %D%/completion/lnetctl %D%/completion/lnetd
dist_bashcompletion_DATA += %D%/completion/lst
dist_bashcompletion_DATA += %D%/completion/o2ibcalc
dist_bashcompletion_DATA += %D%/completion/rpcping %D%/completion/rpcserve
dist_bashcompletion_DATA += %D%/completion/ulnet-keys %D%/completion/ulrpc

if !WITH_FUZZERS
sbin_PROGRAMS += %D%/bin/lnetctl %D%/bin/lnetd %D%/bin/lst
bin_PROGRAMS += %D%/bin/o2ibcalc %D%/bin/rpcping %D%/bin/rpcserve
bin_PROGRAMS += %D%/bin/protoc-gen-ulrpc
bin_PROGRAMS += %D%/bin/ulrpc
if WITH_TLS
sbin_PROGRAMS += %D%/bin/ulnet-keys
endif
endif

EXTRA_DIST += %D%/lnetd.service.in

# Directories are known to make only, not to configure.
%D%/lnetd.service: %D%/lnetd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	sed -e 's,[@]sbindir[@],$(sbindir),g' \
		-e 's,[@]sysconfdir[@],$(sysconfdir),g' \
		$(srcdir)/%D%/lnetd.service.in >$@.tmp && mv $@.tmp $@
CLEANFILES += %D%/lnetd.service
noinst_DATA = %D%/lnetd.service
if WITH_SYSTEMD_UNIT
nodist_systemdsystemunit_DATA = %D%/lnetd.service
endif

# For people who look at packets: ulnet_wireshark(7).
wiresharkdir = $(datadir)/ulnet/wireshark
dist_wireshark_DATA = %D%/wireshark/ulnet.lua

# For Prometheus and Grafana: ulnet_metrics(7).
grafanadir = $(datadir)/ulnet/grafana
dist_grafana_DATA = %D%/grafana/ulnet.json
