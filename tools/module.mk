# Programs to be installed. They use what is installed and nothing else: the
# public headers, and the two libraries.
sbin_PROGRAMS =
bin_PROGRAMS =
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = %D%/completion/lnetctl %D%/completion/lnetd
dist_bashcompletion_DATA += %D%/completion/lst
dist_bashcompletion_DATA += %D%/completion/o2ibcalc
dist_bashcompletion_DATA += %D%/completion/rpcping %D%/completion/rpcserve

if !WITH_FUZZERS
sbin_PROGRAMS += %D%/lnetctl %D%/lnetd %D%/lst
bin_PROGRAMS += %D%/o2ibcalc %D%/rpcping %D%/rpcserve
endif

exporter_sources = %D%/exporter.c %D%/exporter.h
exporter_sources += %D%/metrics.c %D%/metrics.h
exporter_sources += %D%/place.c %D%/place.h

%C%_lnetctl_SOURCES = %D%/lnetctl.c
%C%_lnetctl_SOURCES += %D%/command.c %D%/command.h
%C%_lnetctl_SOURCES += %D%/command_table.c %D%/command_help.c
%C%_lnetctl_SOURCES += %D%/request.c %D%/request.h
%C%_lnetctl_SOURCES += %D%/secure.c %D%/secure.h
%C%_lnetctl_SOURCES += %D%/file.c %D%/file.h
%C%_lnetctl_SOURCES += %D%/nearest.c %D%/nearest.h
%C%_lnetctl_SOURCES += %D%/top.c %D%/top.h
%C%_lnetctl_SOURCES += %D%/table.c %D%/table.h
%C%_lnetctl_SOURCES += %D%/words.c %D%/words.h
%C%_lnetctl_SOURCES += %D%/say.c %D%/say.h
%C%_lnetctl_SOURCES += $(exporter_sources)
%C%_lnetctl_LINK = $(INSTALLED_LINK)
%C%_lnetctl_LDADD = $(libulnetctl) $(MICROHTTPD_LIBS)

# Of every program that is a node.
node_sources = %D%/node.c %D%/node.h
node_sources += %D%/node_options.c %D%/node_options.h
node_sources += %D%/option.c %D%/option.h
node_sources += %D%/say.c %D%/say.h
node_sources += %D%/secure.c %D%/secure.h
node_sources += %D%/request.c %D%/request.h
node_sources += %D%/file.c %D%/file.h

%C%_lnetd_SOURCES = %D%/lnetd.c
%C%_lnetd_SOURCES += %D%/lnetd_options.c %D%/lnetd_options.h
%C%_lnetd_SOURCES += %D%/daemon.c %D%/daemon.h
%C%_lnetd_SOURCES += %D%/notify.c %D%/notify.h
%C%_lnetd_SOURCES += %D%/pidfile.c %D%/pidfile.h
%C%_lnetd_SOURCES += $(exporter_sources)
%C%_lnetd_SOURCES += %D%/metrics_options.c %D%/metrics_options.h
%C%_lnetd_SOURCES += %D%/lst_options.c %D%/lst_options.h
%C%_lnetd_SOURCES += $(node_sources)
%C%_lnetd_LINK = $(INSTALLED_LINK)
%C%_lnetd_LDADD = liblst.a $(libulnetctl) $(MICROHTTPD_LIBS)

# A test runs the commands on a node of its own.
lst_commands = %D%/lst_command.c %D%/lst_command.h
lst_commands += %D%/lst_session.c %D%/lst_group.c %D%/lst_batch.c
lst_commands += %D%/lst_test.c %D%/lst_ping.c %D%/lst_stat.c
lst_commands += %D%/lst_nodes.c %D%/lst_nodes.h
lst_commands += %D%/lst_state.c %D%/lst_state.h
lst_commands += %D%/lst_words.c %D%/lst_words.h
lst_commands += %D%/nearest.c %D%/nearest.h

%C%_lst_SOURCES = %D%/lst.c $(lst_commands) $(node_sources)
%C%_lst_LINK = $(INSTALLED_LINK)
%C%_lst_LDADD = liblst.a $(libulnetctl)

%C%_rpcserve_SOURCES = %D%/rpcserve.c
%C%_rpcserve_SOURCES += %D%/cutoff.c %D%/cutoff.h
%C%_rpcserve_SOURCES += %D%/signals.c %D%/signals.h
%C%_rpcserve_SOURCES += %D%/lst_options.c %D%/lst_options.h
%C%_rpcserve_SOURCES += $(node_sources)
%C%_rpcserve_SOURCES += $(exporter_sources)
%C%_rpcserve_SOURCES += %D%/metrics_options.c %D%/metrics_options.h
%C%_rpcserve_LINK = $(INSTALLED_LINK)
%C%_rpcserve_LDADD = liblst.a libservices.a $(libulrpc) $(libulnetctl) $(PROTOBUF_C_LIBS) \
	$(MICROHTTPD_LIBS)

%C%_rpcping_SOURCES = %D%/rpcping.c
%C%_rpcping_SOURCES += %D%/rpcping_load.c %D%/rpcping_load.h
%C%_rpcping_SOURCES += %D%/rpcping_options.c %D%/rpcping_options.h
%C%_rpcping_SOURCES += %D%/rpcping_report.c %D%/rpcping_report.h
%C%_rpcping_SOURCES += %D%/histogram.c %D%/histogram.h
%C%_rpcping_SOURCES += %D%/signals.c %D%/signals.h
%C%_rpcping_SOURCES += $(node_sources)
%C%_rpcping_LINK = $(INSTALLED_LINK)
%C%_rpcping_LDADD = libservices.a $(libulrpc) $(libulnetctl) $(PROTOBUF_C_LIBS)

# What o2ibcalc reads: fuzzed, too.
o2ibcalc_input_sources = %D%/o2ibcalc_input.c %D%/o2ibcalc_input.h
o2ibcalc_input_sources += %D%/o2ibcalc_yaml.c %D%/o2ibcalc_yaml.h
o2ibcalc_input_sources += %D%/nearest.c %D%/nearest.h

%C%_o2ibcalc_SOURCES = %D%/o2ibcalc.c
%C%_o2ibcalc_SOURCES += %D%/o2ibcalc_document.c
%C%_o2ibcalc_SOURCES += %D%/o2ibcalc_emit.c %D%/o2ibcalc_emit.h
%C%_o2ibcalc_SOURCES += %D%/o2ibcalc_options.c %D%/o2ibcalc_options.h
%C%_o2ibcalc_SOURCES += %D%/o2ibcalc_table.c %D%/o2ibcalc_report.h
%C%_o2ibcalc_SOURCES += %D%/o2ibcalc_value.c %D%/o2ibcalc_value.h
%C%_o2ibcalc_SOURCES += %D%/o2ibcalc_what_if.c
%C%_o2ibcalc_SOURCES += $(o2ibcalc_input_sources)
%C%_o2ibcalc_SOURCES += %D%/file.c %D%/file.h
%C%_o2ibcalc_SOURCES += %D%/option.c %D%/option.h
%C%_o2ibcalc_LINK = $(INSTALLED_LINK)
%C%_o2ibcalc_LDADD = $(libulnet) $(YAML_LIBS)

# For those who write .proto files, run by protoc.
if !WITH_FUZZERS
bin_PROGRAMS += %D%/protoc-gen-ulrpc
endif
%C%_protoc_gen_ulrpc_SOURCES = %D%/protoc_gen_ulrpc.c
%C%_protoc_gen_ulrpc_SOURCES += %D%/protoc_name.c %D%/protoc_name.h
nodist_%C%_protoc_gen_ulrpc_SOURCES = %D%/plugin.pb-c.c
%C%_protoc_gen_ulrpc_LDADD = libulrpcproto.a $(PROTOBUF_C_LIBS)
$(%C%_protoc_gen_ulrpc_OBJECTS): | $(protos_made)
dist_noinst_DATA += %D%/plugin.proto
protos_made += %D%/plugin.pb-c.h %D%/plugin.pb-c.c

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
