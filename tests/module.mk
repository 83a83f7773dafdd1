# One line per file of tests, and one program per room: those of room lnet/path are
# unit/lnet/path/*_test.c, and all in one program, unit/lnet_path_test. One test alone:
# unit/lnet_path_test --filter SUITE/NAME.
unit_tests =

unit_tests += %D%/unit/base_test
%C%_unit_base_test_SOURCES = \
	%D%/unit/base/commons_test.c \
	%D%/unit/base/backoff_test.c \
	%D%/unit/base/buf_test.c \
	%D%/unit/base/crc32c_test.c \
	%D%/unit/base/door_test.c \
	%D%/unit/base/env_sim_test.c \
	%D%/unit/base/fsm_test.c \
	%D%/unit/base/hash_test.c \
	%D%/unit/base/heap_test.c \
	%D%/unit/base/herd_test.c \
	%D%/unit/base/id_test.c \
	%D%/unit/base/iov_test.c \
	%D%/unit/base/list_test.c \
	%D%/unit/base/lobby_test.c \
	%D%/unit/base/lockstep_test.c \
	%D%/unit/base/log_test.c \
	%D%/unit/base/loop_guest_test.c \
	%D%/unit/base/loop_test.c \
	%D%/unit/base/loop_watch_test.c \
	%D%/unit/base/pattern_test.c \
	%D%/unit/base/pool_test.c \
	%D%/unit/base/share_test.c \
	%D%/unit/base/siphash_test.c \
	%D%/unit/base/spin_test.c \
	%D%/unit/base/timer_test.c \
	%D%/unit/base/util_test.c \
	bench/herd_law.c bench/herd_law.h

if WITH_TLS
unit_tests += %D%/unit/secure_test
%C%_unit_secure_test_SOURCES = \
	%D%/unit/secure/clock.c %D%/unit/secure/clock.h \
	%D%/unit/secure/digest_test.c \
	%D%/unit/secure/folder.h \
	%D%/unit/secure/handshake_test.c \
	%D%/unit/secure/keys_test.c \
	%D%/unit/secure/munge.h \
	%D%/unit/secure/munge_test.c \
	%D%/unit/secure/piece_test.c \
	%D%/unit/secure/once_test.c \
	%D%/unit/secure/record_test.c \
	%D%/unit/secure/stream_test.c \
	$(ulnet_keys_make)
%C%_unit_secure_test_LDADD = libulnetsecure.a $(LDADD) $(OPENSSL_LIBS)
endif

unit_tests += %D%/unit/lnet_core_test
%C%_unit_lnet_core_test_SOURCES = \
	%D%/unit/lnet/core/directory_test.c \
	%D%/unit/lnet/core/setting_test.c \
	%D%/unit/lnet/core/stat_test.c
%C%_unit_lnet_core_test_LINK = $(LINK) -Wl,--wrap=malloc

unit_tests += %D%/unit/names_test
%C%_unit_names_test_SOURCES = \
	%D%/unit/names/dns_test.c \
	%D%/unit/names/file_test.c \
	%D%/unit/names/name_server.c %D%/unit/names/name_server.h \
	%D%/unit/names/names_test.c \
	%D%/unit/names/partly_test.c \
	%D%/unit/names/target_test.c \
	%D%/unit/names/told.h %D%/unit/names/watch_test.c
%C%_unit_names_test_LINK = $(LINK) -Wl,--wrap=ares_init_options \
	-Wl,--wrap=inotify_add_watch

if WITH_ETCD
unit_tests += %D%/unit/etcd_test
endif
%C%_unit_etcd_test_SOURCES = %D%/unit/etcd/etcd_test.c %D%/unit/names/told.h
%C%_unit_etcd_test_CFLAGS = $(AM_CFLAGS) $(ETCD_CFLAGS)
%C%_unit_etcd_test_LDADD = libulnetetcdcore.a $(LDADD) $(ETCD_LIBS)

unit_tests += %D%/unit/lnet_nid_test
%C%_unit_lnet_nid_test_SOURCES = \
	%D%/unit/lnet/nid/nid_test.c \
	%D%/unit/lnet/nid/nidlist_test.c \
	%D%/unit/lnet/nid/range_test.c

unit_tests += %D%/unit/lnet_text_test
%C%_unit_lnet_text_test_SOURCES = %D%/unit/lnet/text/networks_test.c

unit_tests += %D%/unit/lnet_policy_test
%C%_unit_lnet_policy_test_SOURCES = \
	%D%/unit/lnet/policy/policies_test.c \
	%D%/unit/lnet/policy/policy_test.c

unit_tests += %D%/unit/lnet_portal_test
%C%_unit_lnet_portal_test_SOURCES = \
	%D%/unit/lnet/portal/event_test.c \
	%D%/unit/lnet/portal/match_test.c \
	%D%/unit/lnet/portal/md_test.c \
	%D%/unit/lnet/portal/mem_test.c

unit_tests += %D%/unit/lnet_net_test
%C%_unit_lnet_net_test_SOURCES = \
	%D%/unit/lnet/net/net_test.c \
	%D%/unit/lnet/net/ni_conf_test.c \
	%D%/unit/lnet/net/ni_test.c \
	%D%/unit/lnet/net/numa_test.c

unit_tests += %D%/unit/lnet_peer_test
%C%_unit_lnet_peer_test_SOURCES = \
	%D%/unit/lnet/peer/alias_test.c \
	%D%/unit/lnet/peer/claim_test.c \
	%D%/unit/lnet/peer/configured_test.c \
	%D%/unit/lnet/peer/member_test.c \
	%D%/unit/lnet/peer/prefer_test.c
%C%_unit_lnet_peer_test_LINK = $(LINK) -Wl,--wrap=malloc

unit_tests += %D%/unit/lnet_route_test
%C%_unit_lnet_route_test_SOURCES = \
	%D%/unit/lnet/route/gateway_test.c \
	%D%/unit/lnet/route/route_test.c \
	%D%/unit/lnet/route/routed_test.c

unit_tests += %D%/unit/lnet_path_test
%C%_unit_lnet_path_test_SOURCES = \
	%D%/unit/lnet/path/explain_test.c \
	%D%/unit/lnet/path/gateway_test.c \
	%D%/unit/lnet/path/path_test.c \
	%D%/unit/lnet/path/rank_test.c \
	%D%/unit/lnet/path/verdict_test.c \
	%D%/unit/lnet/path/select_test.c \
	%D%/unit/lnet/path/failed_paths_test.c

unit_tests += %D%/unit/lnet_message_test
%C%_unit_lnet_message_test_SOURCES = \
	%D%/unit/lnet/message/connect_test.c \
	%D%/unit/lnet/message/connecting_test.c \
	%D%/unit/lnet/message/credit_test.c \
	%D%/unit/lnet/message/end_test.c \
	%D%/unit/lnet/message/forward_test.c \
	%D%/unit/lnet/message/lazy_test.c \
	%D%/unit/lnet/message/op_test.c \
	%D%/unit/lnet/message/throttle_test.c \
	%D%/unit/lnet/message/parse_test.c \
	%D%/unit/lnet/message/push_test.c \
	%D%/unit/lnet/message/rails_test.c \
	%D%/unit/lnet/message/reroute_test.c \
	%D%/unit/lnet/message/scenario_test.c \
	%D%/unit/lnet/message/silence_test.c \
	%D%/unit/lnet/message/take_test.c \
	%D%/unit/lnet/message/unread_test.c \
	%D%/unit/lnet/message/times_test.c \
	%D%/unit/lnet/message/wire_test.c

unit_tests += %D%/unit/lnet_discovery_test
%C%_unit_lnet_discovery_test_SOURCES = \
	%D%/unit/lnet/discovery/ask_test.c \
	%D%/unit/lnet/discovery/asked_test.c \
	%D%/unit/lnet/discovery/claim_cost_test.c \
	%D%/unit/lnet/discovery/discovery_test.c \
	%D%/unit/lnet/discovery/false_claim_test.c \
	%D%/unit/lnet/discovery/frames_test.c \
	%D%/unit/lnet/discovery/lost_nid_test.c \
	%D%/unit/lnet/discovery/merge_test.c \
	%D%/unit/lnet/discovery/neighbour_test.c \
	%D%/unit/lnet/discovery/ping_info_test.c \
	%D%/unit/lnet/discovery/reconcile_test.c \
	%D%/unit/lnet/discovery/recovery_test.c \
	%D%/unit/lnet/discovery/state_test.c \
	%D%/unit/lnet/discovery/unverified_test.c \
	%D%/unit/lnet/discovery/waiting_test.c
%C%_unit_lnet_discovery_test_LINK = $(LINK) -Wl,--wrap=malloc

unit_tests += %D%/unit/lnet_fault_test
%C%_unit_lnet_fault_test_SOURCES = \
	%D%/unit/lnet/fault/inject_test.c \
	%D%/unit/lnet/fault/rule_test.c

unit_tests += %D%/unit/lnet_node_test
%C%_unit_lnet_node_test_SOURCES = \
	%D%/unit/lnet/node/conf_test.c \
	%D%/unit/lnet/node/misuse_test.c \
	%D%/unit/lnet/node/node_test.c \
	%D%/unit/lnet/node/run_test.c \
	%D%/unit/lnet/node/waits_test.c \
	%D%/unit/lnet/node/watch_test.c \
	%D%/unit/lnet/node/work_test.c

unit_tests += %D%/unit/lnd_test
%C%_unit_lnd_test_SOURCES = \
	%D%/unit/lnd/cause_test.c \
	%D%/unit/lnd/connect_test.c \
	%D%/unit/lnd/netif_test.c \
	%D%/unit/lnd/silence_test.c \
	%D%/unit/lnd/tls_rules_test.c

unit_tests += %D%/unit/socklnd_test
%C%_unit_socklnd_test_SOURCES = \
	%D%/unit/socklnd/caller_test.c \
	%D%/unit/socklnd/proto_test.c \
	%D%/unit/socklnd/sock_test.c \
	%D%/unit/socklnd/tape_test.c \
	%D%/lnd/tape.c %D%/lnd/tape.h

unit_tests += %D%/unit/shmlnd_test
%C%_unit_shmlnd_test_SOURCES = \
	%D%/unit/shmlnd/crowd_test.c \
	%D%/unit/shmlnd/hostile_test.c \
	%D%/unit/shmlnd/kept_test.c \
	%D%/unit/shmlnd/lend.c %D%/unit/shmlnd/lend.h \
	%D%/unit/shmlnd/loan_test.c \
	%D%/unit/shmlnd/rig.c %D%/unit/shmlnd/rig.h \
	%D%/unit/shmlnd/ring_test.c \
	%D%/unit/shmlnd/stall_test.c \
	%D%/unit/shmlnd/view_test.c

unit_tests += %D%/unit/o2iblnd_test
%C%_unit_o2iblnd_test_SOURCES = \
	%D%/unit/o2iblnd/admit_test.c \
	%D%/unit/o2iblnd/calc_test.c \
	%D%/unit/o2iblnd/conn_test.c \
	%D%/unit/o2iblnd/credit_test.c \
	%D%/unit/o2iblnd/direct_test.c \
	%D%/unit/o2iblnd/exchange_hostile_test.c \
	%D%/unit/o2iblnd/exchange_seen_test.c \
	%D%/unit/o2iblnd/exchange_test.c \
	%D%/unit/o2iblnd/fault_test.c \
	%D%/unit/o2iblnd/hostile_test.c \
	%D%/unit/o2iblnd/memory_test.c \
	%D%/unit/o2iblnd/peer_random_test.c \
	%D%/unit/o2iblnd/peer_test.c \
	%D%/unit/o2iblnd/port_test.c \
	%D%/unit/o2iblnd/random_test.c \
	%D%/unit/o2iblnd/rdma_test.c \
	%D%/unit/o2iblnd/regcache_test.c \
	%D%/unit/o2iblnd/reject_test.c \
	%D%/unit/o2iblnd/resource_test.c \
	%D%/unit/o2iblnd/simqp_connect_test.c \
	%D%/unit/o2iblnd/simqp_end_test.c \
	%D%/unit/o2iblnd/simqp_random_test.c \
	%D%/unit/o2iblnd/simqp_test.c \
	%D%/unit/o2iblnd/tx_test.c \
	%D%/unit/o2iblnd/wire_test.c \
	%D%/unit/o2iblnd/xfer_test.c \
	%D%/unit/o2iblnd/ib_rig.c \
	%D%/unit/o2iblnd/node_rig.c \
	%D%/unit/o2iblnd/peer_rig.c \
	%D%/unit/o2iblnd/simqp_rig.c

unit_tests += %D%/unit/sim_test
%C%_unit_sim_test_SOURCES = \
	%D%/unit/sim/hole_test.c \
	%D%/unit/sim/ni_down_test.c \
	%D%/unit/sim/sim_test.c

unit_tests += %D%/unit/config_test
%C%_unit_config_test_SOURCES = \
	%D%/unit/config/notify_test.c \
	%D%/unit/config/poll_test.c \
	%D%/unit/config/server_test.c \
	%D%/unit/config/sites_test.c \
	%D%/unit/config/request/debug_test.c \
	%D%/unit/config/request/fault_test.c \
	%D%/unit/config/request/import_kernel_test.c \
	%D%/unit/config/request/import_shape_test.c \
	%D%/unit/config/request/import_test.c \
	%D%/unit/config/request/o2ib_test.c \
	%D%/unit/config/request/peer_test.c \
	%D%/unit/config/request/policy_test.c \
	%D%/unit/config/request/program_test.c \
	%D%/unit/config/request/request_test.c \
	%D%/unit/config/request/route_test.c \
	%D%/unit/config/text/routes_test.c \
	%D%/unit/config/yaml/tree_test.c

unit_tests += %D%/unit/rpc_test
%C%_unit_rpc_test_SOURCES = \
	%D%/unit/rpc/away_pair_test.c \
	%D%/unit/rpc/begin_pair_test.c \
	%D%/unit/rpc/cancel_pair_test.c \
	%D%/unit/rpc/checksum_test.c \
	%D%/unit/rpc/context/annex_test.c \
	%D%/unit/rpc/context/context_pair_test.c \
	%D%/unit/rpc/context/known_pair_test.c \
	%D%/unit/rpc/context/intercept_pair_test.c \
	%D%/unit/rpc/context/scope_pair_test.c \
	%D%/unit/rpc/context/status_pair_test.c \
	%D%/unit/rpc/context/status_test.c \
	%D%/unit/rpc/durable_bulk_test.c \
	%D%/unit/rpc/durable_pair_test.c \
	%D%/unit/rpc/estimate_test.c \
	%D%/unit/rpc/hole_pair_test.c \
	%D%/unit/rpc/inbox_test.c \
	%D%/unit/rpc/lent_test.c \
	%D%/unit/rpc/log_share_test.c \
	%D%/unit/rpc/long_reply_limit_test.c \
	%D%/unit/rpc/long_reply_test.c \
	%D%/unit/rpc/loss_pair_test.c \
	%D%/unit/rpc/named_test.c \
	%D%/unit/rpc/pair_test.c \
	%D%/unit/rpc/pause_pair_test.c \
	%D%/unit/rpc/progress_pair_test.c \
	%D%/unit/rpc/quiet_test.c \
	%D%/unit/rpc/rails_test.c \
	%D%/unit/rpc/refused_test.c \
	%D%/unit/rpc/reply_room_test.c \
	%D%/unit/rpc/rules_test.c \
	%D%/unit/rpc/shard_test.c \
	%D%/unit/rpc/slow_pair_test.c \
	%D%/unit/rpc/slow_server_test.c \
	%D%/unit/rpc/forwarded_test.c \
	%D%/unit/rpc/text_test.c

if WITH_TLS
unit_tests += %D%/unit/rpc_proof_test
%C%_unit_rpc_proof_test_SOURCES = \
	%D%/unit/rpc/stream/stream_proof_test.c \
	%D%/unit/rpc/bulk_forgery_test.c \
	%D%/unit/rpc/bulk_sealed_test.c \
	%D%/unit/rpc/forgery_test.c \
	%D%/unit/rpc/munge_test.c \
	%D%/unit/rpc/crowd_sealed_test.c \
	%D%/unit/rpc/own_id_test.c \
	%D%/unit/rpc/permit_test.c \
	%D%/unit/rpc/privacy_test.c \
	%D%/unit/rpc/proof_rig.h \
	%D%/unit/rpc/proof_test.c \
	%D%/unit/rpc/stream/raw_stream.h \
	%D%/unit/rpc/stream/stream_owner_test.c \
	%D%/unit/rpc/stream/stream_rig.c %D%/unit/rpc/stream/stream_rig.h \
	%D%/unit/rpc/strangers_test.c \
	$(ulnet_keys_make)
endif

unit_tests += %D%/unit/rpc_wire_test
%C%_unit_rpc_wire_test_SOURCES = \
	%D%/unit/rpc/wire/wire_control_test.c \
	%D%/unit/rpc/wire/wire_field_test.c \
	%D%/unit/rpc/wire/wire_messages_test.c \
	%D%/unit/rpc/wire/wire_random_test.c \
	%D%/unit/rpc/wire/wire_test.c \
	%D%/unit/rpc/wire/wire_version_test.c

unit_tests += %D%/unit/rpc_stats_test
%C%_unit_rpc_stats_test_SOURCES = \
	%D%/unit/rpc/stats/count_test.c \
	%D%/unit/rpc/stats/gauges_test.c \
	%D%/unit/rpc/stats/hist_test.c \
	%D%/unit/rpc/spans_test.c \
	%D%/unit/rpc/stats/slow_test.c \
	%D%/unit/rpc/stats/stat_test.c \
	%D%/unit/rpc/stats/stats_test.c

unit_tests += %D%/unit/rpc_bulk_test
%C%_unit_rpc_bulk_test_SOURCES = \
	%D%/unit/rpc/bulk/bulk_again_test.c \
	%D%/unit/rpc/bulk/bulk_call_test.c \
	%D%/unit/rpc/bulk/bulk_conn_loss_test.c \
	%D%/unit/rpc/bulk/bulk_sum_test.c \
	%D%/unit/rpc/bulk/bulk_lossy_test.c \
	%D%/unit/rpc/bulk/bulk_test.c \
	%D%/unit/rpc/bulk/bulk_wait_test.c \
	%D%/unit/rpc/bulk/transfer_again_test.c \
	%D%/unit/rpc/bulk/transfer_test.c
%C%_unit_rpc_bulk_test_LINK = $(LINK) -Wl,--wrap=crc32c

unit_tests += %D%/unit/rpc_client_test
%C%_unit_rpc_client_test_SOURCES = \
	%D%/unit/rpc/client/attempt_test.c \
	%D%/unit/rpc/client/batch_test.c \
	%D%/unit/rpc/client/call_again_test.c \
	%D%/unit/rpc/client/call_test.c \
	%D%/unit/rpc/client/conn_loss_test.c \
	%D%/unit/rpc/client/herd_test.c \
	%D%/unit/rpc/client/hostile_answer_test.c \
	%D%/unit/rpc/client/hostile_reply_test.c \
	%D%/unit/rpc/client/import_test.c \
	%D%/unit/rpc/client/reply_buf_test.c \
	%D%/unit/rpc/client/retry_call_test.c \
	%D%/unit/rpc/client/retry_test.c \
	%D%/unit/rpc/client/skew_client_test.c \
	%D%/unit/rpc/client/slots_test.c \
	%D%/unit/rpc/client/slow_start_test.c \
	%D%/unit/rpc/client/timeout_test.c \
	%D%/unit/rpc/client/window_test.c

# A store's files are on a disk that the test has (store_rig.h).
unit_tests += %D%/unit/rpc_store_test
%C%_unit_rpc_store_test_SOURCES = \
	%D%/unit/rpc/store/store_crash_test.c \
	%D%/unit/rpc/store/store_disk_test.c \
	%D%/unit/rpc/store/store_rig.c %D%/unit/rpc/store/store_rig.h \
	%D%/unit/rpc/store/store_test.c \
	%D%/unit/rpc/store/table_test.c
%C%_unit_rpc_store_test_LINK = $(LINK) -Wl,--wrap=pwritev \
	-Wl,--wrap=fdatasync -Wl,--wrap=fsync -Wl,--wrap=ftruncate \
	-Wl,--wrap=renameat -Wl,--wrap=unlinkat -Wl,--wrap=time

unit_tests += %D%/unit/rpc_server_test
%C%_unit_rpc_server_test_SOURCES = \
	%D%/unit/rpc/server/queue/exec_test.c \
	%D%/unit/rpc/server/queue/gate_test.c \
	%D%/unit/rpc/server/queue/sched_test.c \
	%D%/unit/rpc/server/queue/share_test.c \
	%D%/unit/rpc/server/queue/worker_sim_test.c \
	%D%/unit/rpc/server/set_test.c \
	%D%/unit/rpc/server/serve/again_test.c \
	%D%/unit/rpc/server/serve/cancel_test.c \
	%D%/unit/rpc/server/serve/durable_test.c \
	%D%/unit/rpc/server/serve/service_test.c \
	%D%/unit/rpc/server/serve/extend_test.c \
	%D%/unit/rpc/server/serve/hostile_lent_test.c \
	%D%/unit/rpc/server/serve/hostile_request_test.c \
	%D%/unit/rpc/server/serve/long_reply_hold_test.c \
	%D%/unit/rpc/server/serve/misuse_test.c \
	%D%/unit/rpc/server/serve/request_end_test.c \
	%D%/unit/rpc/server/serve/request_limit_test.c \
	%D%/unit/rpc/server/serve/request_test.c \
	%D%/unit/rpc/server/serve/skew_server_test.c \
	%D%/unit/rpc/server/serve/stall_test.c \
	%D%/unit/rpc/server/serve/stored_test.c \
	%D%/unit/rpc/server/session/suspect_test.c \
	%D%/unit/rpc/server/session/connect_test.c \
	%D%/unit/rpc/server/session/crowd_test.c \
	%D%/unit/rpc/server/session/export_test.c \
	%D%/unit/rpc/server/session/hostile_control_test.c \
	%D%/unit/rpc/server/session/lease_test.c \
	%D%/unit/rpc/server/session/record_test.c \
	%D%/unit/rpc/server/services_test.c \
	%D%/unit/rpc/server/shared_portal_test.c \
	%D%/unit/rpc/server/tombstone_test.c

# RPC under load and in trouble, in virtual time: what comes of it is counted.
load_tests = %D%/unit/rpc_load_test
%C%_unit_rpc_load_test_SOURCES = \
	%D%/unit/rpc/client/outage_test.c \
	%D%/unit/rpc/server/serve/overload_test.c \
	%D%/unit/rpc/server/session/recovery_test.c \
	%D%/unit/rpc/idle_test.c
# Bodies that are longer than those of other tests; gigabytes with --long.
body_tests = %D%/thread/long_bodies

unit_tests += %D%/unit/rpc_stub_test
%C%_unit_rpc_stub_test_SOURCES = \
	%D%/unit/rpc/stub/about_test.c \
	%D%/unit/rpc/stub/message_test.c \
	%D%/unit/rpc/stub/stub_sim_test.c
nodist_%C%_unit_rpc_stub_test_SOURCES = %D%/unit/rpc/stub/box.pb-c.c \
	%D%/unit/rpc/stub/shapes.pb-c.c
if WITH_PROTOC
%C%_unit_rpc_stub_test_SOURCES += %D%/unit/rpc/stub/interop_test.c \
	%D%/unit/rpc/stub/serve_streams_test.c
nodist_%C%_unit_rpc_stub_test_SOURCES += %D%/unit/rpc/stub/interop.pb-c.c
$(%C%_unit_rpc_stub_test_OBJECTS): | %D%/unit/rpc/stub/interop.ulrpc.h
ulrpc_headers_made += %D%/unit/rpc/stub/interop.ulrpc.h
endif
unit_tests += %D%/unit/rpc_replicas_test
%C%_unit_rpc_replicas_test_SOURCES = \
	%D%/unit/rpc/replicas/fair_test.c \
	%D%/unit/rpc/replicas/hedge_test.c \
	%D%/unit/rpc/replicas/long_test.c \
	%D%/unit/rpc/replicas/replica_test.c \
	%D%/unit/rpc/replicas/replicas_test.c \
	%D%/unit/rpc/replicas/room_test.c \
	%D%/unit/rpc/replicas/servers.c \
	%D%/unit/rpc/replicas/servers.h \
	%D%/unit/rpc/replicas/set_stub_test.c \
	%D%/unit/rpc/replicas/streams_test.c \
	%D%/unit/rpc/replicas/times_test.c \
	%D%/unit/rpc/replicas/under_test.c
nodist_%C%_unit_rpc_replicas_test_SOURCES = %D%/unit/rpc/stub/box.pb-c.c
$(%C%_unit_rpc_replicas_test_OBJECTS): | $(protos_made)
unit_tests += %D%/unit/rpc_stream_test
%C%_unit_rpc_stream_test_SOURCES = \
	%D%/unit/rpc/stream/hostile_stream_test.c \
	%D%/unit/rpc/stream/raw_stream.h \
	%D%/unit/rpc/stream/stream_rig.c %D%/unit/rpc/stream/stream_rig.h \
	%D%/unit/rpc/stream/stream_fault_test.c \
	%D%/unit/rpc/stream/stream_intercept_test.c \
	%D%/unit/rpc/stream/stream_metadata_test.c \
	%D%/unit/rpc/stream/stream_named_test.c \
	%D%/unit/rpc/stream/stream_set_test.c \
	%D%/unit/rpc/stream/stream_test.c \
	%D%/unit/rpc/stream/stream_under_test.c \
	%D%/unit/rpc/stream/stream_wait_test.c

# Stubs alone: the calls that they make are the test's own.
unit_tests += %D%/unit/rpc_stub_alone_test
%C%_unit_rpc_stub_alone_test_SOURCES = %D%/unit/rpc/stub/stub_test.c
nodist_%C%_unit_rpc_stub_alone_test_SOURCES = %D%/unit/rpc/stub/box.pb-c.c
$(%C%_unit_rpc_stub_test_OBJECTS) $(%C%_unit_rpc_stub_alone_test_OBJECTS): \
	| $(protos_made)
dist_noinst_DATA += %D%/unit/rpc/stub/box.proto %D%/unit/rpc/stub/shapes.proto
protos_made += %D%/unit/rpc/stub/box.pb-c.h %D%/unit/rpc/stub/box.pb-c.c
protos_made += %D%/unit/rpc/stub/shapes.pb-c.h %D%/unit/rpc/stub/shapes.pb-c.c
dist_noinst_DATA += %D%/unit/rpc/stub/interop.proto
protos_made += %D%/unit/rpc/stub/interop.pb-c.h %D%/unit/rpc/stub/interop.pb-c.c

# The programs' own files.
unit_tests += %D%/unit/tools_test
%C%_unit_tools_test_SOURCES = \
	%D%/unit/tools/command_test.c \
	%D%/unit/tools/histogram_test.c \
	%D%/unit/tools/http_clients_test.c \
	%D%/unit/tools/load_test.c \
	%D%/unit/tools/nearest_test.c \
	%D%/unit/tools/option_test.c \
	%D%/unit/tools/words_test.c \
	tools/rpcping/rpcping_load.c \
	tools/lnetctl/command.c tools/lnetctl/command_table.c tools/lnetctl/host.c
%C%_unit_tools_test_LDADD = libtools.a $(LDADD) $(MICROHTTPD_LIBS)
# That of ulrpc: with the library, of which load_test.c has stand-ins.
unit_tests += %D%/unit/tools_ulrpc_test
%C%_unit_tools_ulrpc_test_SOURCES = \
	%D%/unit/tools/ulrpc_test.c \
	tools/ulrpc/json.c tools/ulrpc/print.c tools/ulrpc/read.c \
	tools/ulrpc/schema.c
nodist_%C%_unit_tools_ulrpc_test_SOURCES = %D%/unit/rpc/stub/shapes.pb-c.c \
	%D%/unit/rpc/stub/box.pb-c.c
%C%_unit_tools_ulrpc_test_LDADD = libtools.a $(LDADD)
$(%C%_unit_tools_ulrpc_test_OBJECTS): | $(protos_made)

# What of services needs no network.
unit_tests += %D%/unit/services_test
%C%_unit_services_test_SOURCES = \
	%D%/unit/services/brw_test.c \
	%D%/unit/services/lst_console_test.c \
	%D%/unit/services/lst_message_test.c \
	%D%/unit/services/lst_run_test.c \
	%D%/unit/services/lst_serve_test.c \
	%D%/unit/services/memory_test.c \
	%D%/unit/services/pattern_test.c \
	$(lst_commands)
%C%_unit_services_test_LINK = $(LINK) -Wl,--wrap=memory_touch
%C%_unit_services_test_LDADD = libtools.a liblst.a libservices.a $(LDADD)

# The tests' own code; not that of campaigns, which takes part in their time.
%D%/lnd/%.o %D%/thread/%.o %D%/unit/%.o: CFLAGS += $(TESTS_CFLAGS)
# With assertions that take less time to compile.
%D%/unit/%.o: CPPFLAGS += -I$(srcdir)/%D%/unit/include
EXTRA_DIST += %D%/unit/include/criterion/criterion.h
# This fills and compares gigabytes.
%D%/unit/rpc/bulk/bulk_rig.o: CFLAGS += -O2

# Plain programs, exit status 0 passed, 1 failed, 77 skipped (the last line that
# was printed says why). Also built and run with the thread sanitizer.
thread_tests =
thread_tests += %D%/thread/mailbox_thread
thread_tests += %D%/thread/loop_thread
thread_tests += %D%/thread/ring_thread
thread_tests += %D%/thread/open_thread
thread_tests += %D%/thread/cpt_thread
thread_tests += %D%/thread/cpt_tcp_thread
%C%_thread_cpt_tcp_thread_SOURCES = %D%/thread/cpt_thread.c
%C%_thread_cpt_tcp_thread_CPPFLAGS = $(AM_CPPFLAGS) -DOVER_TCP=1
thread_tests += %D%/thread/cpt_shm_thread
%C%_thread_cpt_shm_thread_SOURCES = %D%/thread/cpt_thread.c
%C%_thread_cpt_shm_thread_CPPFLAGS = $(AM_CPPFLAGS) -DOVER_SHM=1
thread_tests += %D%/thread/cpt_o2ib_thread
%C%_thread_cpt_o2ib_thread_SOURCES = %D%/thread/cpt_thread.c \
	%D%/thread/ferry.c %D%/thread/ferry.h
%C%_thread_cpt_o2ib_thread_CPPFLAGS = $(AM_CPPFLAGS) -DOVER_O2IB=1
thread_tests += %D%/thread/o2ib_thread
%C%_thread_o2ib_thread_SOURCES = %D%/thread/o2ib_thread.c \
	%D%/thread/ferry.c %D%/thread/ferry.h
thread_tests += %D%/thread/call_thread
thread_tests += %D%/thread/stream_thread
thread_tests += %D%/thread/work_thread
thread_tests += %D%/thread/walk_thread
thread_tests += %D%/thread/peers_thread
thread_tests += %D%/thread/directory_thread
thread_tests += %D%/thread/slow_thread
thread_tests += %D%/thread/bulk_thread
thread_tests += %D%/thread/abort_thread
thread_tests += %D%/thread/times_thread
thread_tests += %D%/thread/replicas_thread
thread_tests += %D%/thread/rpc_thread
thread_tests += %D%/thread/rpc_host_thread
%C%_thread_rpc_host_thread_SOURCES = %D%/thread/rpc_thread.c
%C%_thread_rpc_host_thread_CPPFLAGS = $(AM_CPPFLAGS) -DONE_HOST=1
thread_tests += %D%/thread/wait_thread
thread_tests += %D%/thread/callers_thread
thread_tests += %D%/thread/fork_thread
thread_tests += %D%/thread/bounce_thread
thread_tests += %D%/thread/fault_thread
thread_tests += %D%/thread/control_thread
thread_tests += %D%/thread/set_thread
thread_tests += %D%/thread/spans_thread
thread_tests += %D%/thread/stats_thread
thread_tests += %D%/thread/cancel_thread
thread_tests += %D%/thread/store_thread
thread_tests += %D%/thread/stub_thread
%C%_thread_stub_thread_SOURCES = %D%/thread/stub_thread.c
nodist_%C%_thread_stub_thread_SOURCES = %D%/unit/rpc/stub/box.pb-c.c
$(%C%_thread_stub_thread_OBJECTS): | $(protos_made)

# One program for each LND, all with the same list of behaviours. Plain programs, too;
# they print how many of them passed.
lnd_tests =
lnd_tests += %D%/lnd/lolnd_test
lnd_tests += %D%/lnd/simlnd_test
lnd_tests += %D%/lnd/o2iblnd_test
lnd_tests += %D%/lnd/shmlnd_test
lnd_tests += %D%/lnd/socklnd_test
lnd_suite = %D%/lnd/conformance.c %D%/lnd/conformance.h \
	%D%/lnd/behaviour.h %D%/lnd/message.c %D%/lnd/stream.c \
	%D%/lnd/ending.c \
	%D%/lnd/box.c %D%/lnd/box.h %D%/lnd/real.c
%C%_lnd_lolnd_test_SOURCES = %D%/lnd/lolnd_test.c $(lnd_suite)
%C%_lnd_simlnd_test_SOURCES = %D%/lnd/simlnd_test.c $(lnd_suite)
%C%_lnd_o2iblnd_test_SOURCES = %D%/lnd/o2iblnd_test.c $(lnd_suite)
%C%_lnd_shmlnd_test_SOURCES = %D%/lnd/shmlnd_test.c $(lnd_suite)
# Keys for nets with TLS.
lnd_proofs = %D%/lnd/proofs.c %D%/lnd/proofs.h
if WITH_TLS
lnd_proofs += $(ulnet_keys_make)
endif
%C%_lnd_socklnd_test_SOURCES = %D%/lnd/socklnd_test.c $(lnd_proofs) \
	%D%/lnd/netdev.c %D%/lnd/netdev.h \
	%D%/lnd/netns.c %D%/lnd/netns.h $(lnd_suite)

# socklnd and peers whose bytes the test writes itself.
sock_raw_peer = %D%/lnd/raw_peer.c %D%/lnd/raw_peer.h \
	%D%/lnd/raw_tls.c %D%/lnd/raw_tls.h \
	%D%/lnd/census.c %D%/lnd/census.h
lnd_tests += %D%/lnd/hostile_test
%C%_lnd_hostile_test_SOURCES = %D%/lnd/hostile_test.c %D%/lnd/hostile.h \
	%D%/lnd/hostile.c %D%/lnd/hostile_greeting.c \
	%D%/lnd/hostile_frame.c %D%/lnd/hostile_answer.c \
	%D%/lnd/hostile_share.c \
	$(lnd_proofs) $(sock_raw_peer) $(lnd_suite)
lnd_tests += %D%/lnd/fault_test
%C%_lnd_fault_test_SOURCES = %D%/lnd/fault_test.c %D%/lnd/fault.h \
	%D%/lnd/fault_child.c %D%/lnd/fault_load.c %D%/lnd/fault_time.c \
	%D%/lnd/fault_peer.c $(sock_raw_peer) $(lnd_suite)
lnd_tests += %D%/lnd/accept_test
%C%_lnd_accept_test_SOURCES = %D%/lnd/accept_test.c \
	%D%/lnd/apart.c %D%/lnd/apart.h \
	%D%/lnd/pair.c %D%/lnd/pair.h \
	%D%/lnd/netns.c %D%/lnd/netns.h $(sock_raw_peer) $(lnd_suite)
lnd_tests += %D%/lnd/callers_test
%C%_lnd_callers_test_SOURCES = %D%/lnd/callers_test.c \
	%D%/lnd/apart.c %D%/lnd/apart.h $(sock_raw_peer) $(lnd_suite)
lnd_tests += %D%/lnd/attempt_test
%C%_lnd_attempt_test_SOURCES = %D%/lnd/attempt_test.c \
	%D%/lnd/apart.c %D%/lnd/apart.h \
	%D%/lnd/pair.c %D%/lnd/pair.h \
	%D%/lnd/netdev.c %D%/lnd/netdev.h %D%/lnd/netns.c %D%/lnd/netns.h \
	$(sock_raw_peer) $(lnd_suite)
lnd_tests += %D%/lnd/stall_test
%C%_lnd_stall_test_SOURCES = %D%/lnd/stall_test.c \
	%D%/lnd/apart.c %D%/lnd/apart.h \
	%D%/lnd/pair.c %D%/lnd/pair.h \
	%D%/lnd/netns.c %D%/lnd/netns.h \
	$(sock_raw_peer) $(lnd_suite)
lnd_tests += %D%/lnd/conn_lost_test
%C%_lnd_conn_lost_test_SOURCES = %D%/lnd/conn_lost_test.c \
	%D%/lnd/apart.c %D%/lnd/apart.h \
	%D%/lnd/pair.c %D%/lnd/pair.h \
	$(sock_raw_peer) $(lnd_suite)
lnd_tests += %D%/lnd/files_test
%C%_lnd_files_test_SOURCES = %D%/lnd/files_test.c \
	%D%/lnd/apart.c %D%/lnd/apart.h $(sock_raw_peer) $(lnd_suite)
lnd_tests += %D%/lnd/limits_test
%C%_lnd_limits_test_SOURCES = %D%/lnd/limits_test.c \
	%D%/lnd/apart.c %D%/lnd/apart.h \
	%D%/lnd/pair.c %D%/lnd/pair.h \
	$(sock_raw_peer) $(lnd_suite)

if WITH_TLS
lnd_tests += %D%/lnd/tls_test
%C%_lnd_tls_test_SOURCES = %D%/lnd/tls_test.c \
	%D%/lnd/tls_rig.c %D%/lnd/tls_rig.h \
	%D%/lnd/tls_stranger.c %D%/lnd/tls_change.c \
	%D%/lnd/tls_announce.c \
	%D%/lnd/apart.c %D%/lnd/apart.h \
	%D%/lnd/pair.c %D%/lnd/pair.h \
	$(lnd_proofs) $(sock_raw_peer) $(lnd_suite)
# Somebody between two processes.
lnd_tests += %D%/attack/attack_test
%C%_attack_attack_test_SOURCES = %D%/attack/attack_test.c \
	%D%/attack/attacker.c %D%/attack/attacker.h %D%/attack/harm.c \
	%D%/attack/victims.c %D%/attack/victims.h \
	%D%/lnd/apart.c %D%/lnd/apart.h $(lnd_proofs)
endif

# socklnd, and links that go and come, in a network namespace.
lnd_tests += %D%/lnd/link_test
%C%_lnd_link_test_SOURCES = %D%/lnd/link_test.c \
	%D%/lnd/apart.c %D%/lnd/apart.h \
	%D%/lnd/netdev.c %D%/lnd/netdev.h \
	%D%/lnd/netns.c %D%/lnd/netns.h

# Two nodes under load, whose connections are cut. ./check runs it as a campaign,
# too: longer with --long.
lnd_soak = %D%/lnd/soak
lnd_tests += $(lnd_soak)
%C%_lnd_soak_SOURCES = %D%/lnd/soak.c $(lnd_suite)

# Real nodes' bytes against a node, over TCP in a network namespace.
lnd_tests += %D%/lnd/replay
%C%_lnd_replay_SOURCES = %D%/lnd/replay.c %D%/lnd/replay.h \
	%D%/lnd/replay_plan.c %D%/lnd/replay_check.c \
	%D%/lnd/replay_beside.c %D%/lnd/replay_far.c \
	%D%/lnd/replay_lst.c %D%/lnd/replay_lst.h %D%/lnd/replay_console.c \
	$(lst_commands) \
	%D%/lnd/apart.c %D%/lnd/apart.h \
	%D%/lnd/netdev.c %D%/lnd/netdev.h \
	%D%/lnd/netns.c %D%/lnd/netns.h \
	%D%/lnd/raw.c %D%/lnd/raw.h \
	%D%/lnd/tape.c %D%/lnd/tape.h
%C%_lnd_replay_LDADD = libtools.a liblst.a $(LDADD)

# Whole clusters under virtual time: plain programs, too. Built by make check, run by
# ./check. What befalls the campaigns is random, by seed: they look for what must never
# be. The measures count: time, memory and shares in situations that somebody chose.
sim_campaigns =
lnet_play = %D%/sim/campaign.c
lnet_play += %D%/sim/cluster.c %D%/sim/cluster.h
lnet_play += %D%/sim/rules.c %D%/sim/rules.h
lnet_play += %D%/sim/scenario.c %D%/sim/scenario.h
lnet_play += %D%/sim/traffic.c %D%/sim/traffic.h
sim_campaigns += %D%/sim/campaign
%C%_sim_campaign_SOURCES = $(lnet_play) %D%/sim/world.h %D%/sim/world_net.c
sim_campaigns += %D%/sim/memory_campaign
%C%_sim_memory_campaign_SOURCES = $(lnet_play)
%C%_sim_memory_campaign_SOURCES += %D%/sim/world.h %D%/sim/world_memory.c
%C%_sim_memory_campaign_LINK = $(LINK) -Wl,--wrap=shm_ring_sleep \
	-Wl,--wrap=shm_copy
sim_campaigns += %D%/sim/routes_campaign
routes_play = %D%/sim/campaign.c %D%/sim/scenario.h
routes_play += %D%/sim/cluster.c %D%/sim/cluster.h
routes_play += %D%/sim/policies.c %D%/sim/policies.h
routes_play += %D%/sim/rules.c %D%/sim/rules.h
routes_play += %D%/sim/traffic.c %D%/sim/traffic.h
routes_play += %D%/sim/routes_scenario.c
%C%_sim_routes_campaign_SOURCES = $(routes_play)
rpc_play = %D%/sim/campaign.c %D%/sim/scenario.h
rpc_play += %D%/sim/cluster.c %D%/sim/cluster.h
rpc_play += %D%/sim/rails.c %D%/sim/rails_liar.c
rpc_play += %D%/sim/rails_views.c
rpc_play += %D%/sim/traffic.c %D%/sim/traffic.h
rpc_play += %D%/sim/rules.c %D%/sim/rules.h
rpc_play += %D%/sim/rpc_play.c %D%/sim/rpc_run.h
rpc_play += %D%/sim/rpc_annex.c %D%/sim/rpc_audit.c %D%/sim/rpc_caller.c
rpc_play += %D%/sim/rpc_intercept.c
rpc_play += %D%/sim/rpc_faults.c %D%/sim/rpc_outcome.c
rpc_play += %D%/sim/rpc_server.c %D%/sim/rpc_spans.c %D%/sim/rpc_store.c
rpc_play += %D%/sim/rpc_tally.c %D%/sim/rpc_verbs.c
rpc_play += %D%/sim/sim_keys.c %D%/sim/sim_keys.h
rpc_play += %D%/sim/rpc_work.c
sim_campaigns += %D%/sim/rpc_campaign
%C%_sim_rpc_campaign_SOURCES = %D%/sim/rpc_scenario.c $(rpc_play)
sim_campaigns += %D%/sim/verbs_campaign
%C%_sim_verbs_campaign_SOURCES = %D%/sim/verbs_scenario.c $(rpc_play)
sim_campaigns += %D%/sim/shm_campaign
%C%_sim_shm_campaign_SOURCES = %D%/sim/shm_scenario.c $(rpc_play)
%C%_sim_shm_campaign_SOURCES += %D%/sim/world.h %D%/sim/world_memory.c
%C%_sim_shm_campaign_LINK = $(LINK) -Wl,--wrap=shm_ring_sleep \
	-Wl,--wrap=shm_copy
sim_campaigns += %D%/sim/rails_campaign
%C%_sim_rails_campaign_SOURCES = %D%/sim/rails_scenario.c $(rpc_play)
sim_campaigns += %D%/sim/replicas_campaign
%C%_sim_replicas_campaign_SOURCES = %D%/sim/replicas_scenario.c
%C%_sim_replicas_campaign_SOURCES += %D%/sim/replicas_context.c
%C%_sim_replicas_campaign_SOURCES += %D%/sim/replicas_faults.c
%C%_sim_replicas_campaign_SOURCES += %D%/sim/replicas_flows.c
%C%_sim_replicas_campaign_SOURCES += %D%/sim/replicas_run.h
%C%_sim_replicas_campaign_SOURCES += %D%/sim/replicas_store.c
%C%_sim_replicas_campaign_SOURCES += %D%/sim/rules.c %D%/sim/rules.h
%C%_sim_replicas_campaign_SOURCES += %D%/sim/campaign.c %D%/sim/scenario.h
%C%_sim_replicas_campaign_SOURCES += %D%/sim/cluster.c %D%/sim/cluster.h
sim_campaigns += %D%/sim/streams_campaign
%C%_sim_streams_campaign_SOURCES = %D%/sim/streams_scenario.c
%C%_sim_streams_campaign_SOURCES += %D%/sim/campaign.c %D%/sim/scenario.h
%C%_sim_streams_campaign_SOURCES += %D%/sim/cluster.c %D%/sim/cluster.h
%C%_sim_streams_campaign_SOURCES += %D%/sim/rules.c %D%/sim/rules.h
%C%_sim_streams_campaign_SOURCES += %D%/sim/sim_keys.c %D%/sim/sim_keys.h
%C%_sim_streams_campaign_SOURCES += %D%/sim/streams_faults.c
%C%_sim_streams_campaign_SOURCES += %D%/sim/streams_run.h
%C%_sim_streams_campaign_SOURCES += %D%/sim/streams_trees.c

sim_measures =
sim_measures += %D%/sim/herd
sim_measures += %D%/sim/crowd
sim_measures += %D%/sim/fair
sim_measures += %D%/sim/failover
%C%_sim_failover_SOURCES = %D%/sim/failover.c
%C%_sim_failover_SOURCES += %D%/sim/failover_load.c %D%/sim/failover_load.h
sim_measures += %D%/sim/takeover
if WITH_TLS
sim_measures += %D%/sim/knock
%C%_sim_knock_SOURCES = %D%/sim/knock.c $(ulnet_keys_make)
%C%_sim_knock_LDADD = libulnetsecure.a $(LDADD) $(OPENSSL_LIBS)
endif

# Deliberate mistakes, each of which a campaign or a unit test catches: run.sh patches
# and compiles the files, and links them in front of the archives of the program.
EXTRA_DIST += %D%/mutants

# libFuzzer targets; %D%/fuzz/fuzz_X starts from the files of
# %D%/fuzz/corpus/X/. In a build without fuzzers they are tests, which read these
# files.
fuzz_programs =
fuzz_programs += %D%/fuzz/fuzz_nid
fuzz_programs += %D%/fuzz/fuzz_target
fuzz_programs += %D%/fuzz/fuzz_ping
fuzz_programs += %D%/fuzz/fuzz_discover
fuzz_programs += %D%/fuzz/fuzz_parse
fuzz_programs += %D%/fuzz/fuzz_request
fuzz_programs += %D%/fuzz/fuzz_hello
fuzz_programs += %D%/fuzz/fuzz_frame
fuzz_programs += %D%/fuzz/fuzz_o2ib
fuzz_programs += %D%/fuzz/fuzz_yaml
fuzz_programs += %D%/fuzz/fuzz_o2ibcalc
%C%_fuzz_fuzz_o2ibcalc_SOURCES = %D%/fuzz/fuzz_o2ibcalc.c \
	$(o2ibcalc_input_sources) \
	tools/common/option.c
fuzz_programs += %D%/fuzz/fuzz_rpc_requests
fuzz_programs += %D%/fuzz/fuzz_rpc_replies
fuzz_programs += %D%/fuzz/fuzz_rpc_control
fuzz_programs += %D%/fuzz/fuzz_rpc_stream
fuzz_programs += %D%/fuzz/fuzz_annex
fuzz_programs += %D%/fuzz/fuzz_message
fuzz_programs += %D%/fuzz/fuzz_ulrpc
if WITH_TLS
fuzz_programs += %D%/fuzz/fuzz_handshake %D%/fuzz/fuzz_record
fuzz_programs += %D%/fuzz/fuzz_sealed %D%/fuzz/fuzz_stream
%C%_fuzz_fuzz_sealed_SOURCES = %D%/fuzz/fuzz_sealed.c $(ulnet_keys_make)
%C%_fuzz_fuzz_stream_SOURCES = %D%/fuzz/fuzz_stream.c $(ulnet_keys_make)
%C%_fuzz_fuzz_handshake_SOURCES = %D%/fuzz/fuzz_handshake.c $(ulnet_keys_make)
endif
fuzz_programs += %D%/fuzz/fuzz_lst
%C%_fuzz_fuzz_lst_SOURCES = %D%/fuzz/fuzz_lst.c services/lst/message.c
fuzz_programs += %D%/fuzz/fuzz_lst_serve
%C%_fuzz_fuzz_lst_serve_SOURCES = %D%/fuzz/fuzz_lst_serve.c $(lst_sources)
%C%_fuzz_fuzz_message_SOURCES = %D%/fuzz/fuzz_message.c
nodist_%C%_fuzz_fuzz_message_SOURCES = %D%/unit/rpc/stub/box.pb-c.c
$(%C%_fuzz_fuzz_message_OBJECTS): | $(protos_made)
%C%_fuzz_fuzz_ulrpc_SOURCES = %D%/fuzz/fuzz_ulrpc.c \
	tools/ulrpc/json.c tools/ulrpc/print.c tools/ulrpc/read.c \
	tools/ulrpc/schema.c tools/common/option.c
nodist_%C%_fuzz_fuzz_ulrpc_SOURCES = %D%/unit/rpc/stub/shapes.pb-c.c \
	%D%/unit/rpc/stub/box.pb-c.c
$(%C%_fuzz_fuzz_ulrpc_OBJECTS): | $(protos_made)
if !WITH_FUZZERS
check_LIBRARIES += %D%/fuzz/libreplay.a
%C%_fuzz_libreplay_a_SOURCES = %D%/fuzz/replay.c
%C%_fuzz_fuzz_nid_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_target_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_ping_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_discover_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_parse_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_request_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_hello_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_frame_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_o2ib_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_yaml_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_o2ibcalc_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_rpc_requests_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_rpc_replies_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_rpc_control_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_rpc_stream_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_annex_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_message_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_ulrpc_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_handshake_LDADD = %D%/fuzz/libreplay.a libulnetsecure.a $(LDADD) $(OPENSSL_LIBS)
%C%_fuzz_fuzz_record_LDADD = %D%/fuzz/libreplay.a libulnetsecure.a $(LDADD) $(OPENSSL_LIBS)
%C%_fuzz_fuzz_stream_LDADD = %D%/fuzz/libreplay.a libulnetsecure.a $(LDADD) $(OPENSSL_LIBS)
%C%_fuzz_fuzz_sealed_LDADD = %D%/fuzz/libreplay.a $(LDADD) $(OPENSSL_LIBS)
%C%_fuzz_fuzz_lst_LDADD = %D%/fuzz/libreplay.a $(LDADD)
%C%_fuzz_fuzz_lst_serve_LDADD = %D%/fuzz/libreplay.a $(LDADD)
endif

# What the tests of RPC share: rigs, and clients and servers that are played by
# hand. A test is linked with those that it calls.
if WITH_CRITERION
if !WITH_FUZZERS
check_LIBRARIES += librpcrigs.a %D%/unit/librunner.a
unit_runner = %D%/unit/librunner.a
%C%_unit_librunner_a_SOURCES = %D%/unit/runner.c
rpc_rigs = librpcrigs.a
librpcrigs_a_SOURCES = \
	%D%/unit/rpc/bulk/bulk_rig.c %D%/unit/rpc/bulk/bulk_rig.h \
	%D%/unit/rpc/bulk/transfer_rig.c %D%/unit/rpc/bulk/transfer_rig.h \
	%D%/unit/rpc/client/call_rig.c %D%/unit/rpc/client/call_rig.h \
	%D%/unit/rpc/client/fake_server.c %D%/unit/rpc/client/fake_server.h \
	%D%/unit/rpc/hostile_rig.c %D%/unit/rpc/hostile_rig.h \
	%D%/unit/rpc/mover.c %D%/unit/rpc/mover.h \
	%D%/unit/rpc/serve_rig.c %D%/unit/rpc/serve_rig.h \
	%D%/unit/rpc/server/raw_client.c %D%/unit/rpc/server/raw_client.h
endif
endif

# unit/runner.c has a main(), which is taken when the program has none. Others are
# not linked with it, nor with criterion's library, thanks to -Wl,--as-needed.
LDADD = $(rpc_rigs) libulrpcwire.a $(ulrpc_archives) $(ulnetctl_archives) \
	$(ulnetlab_archives) $(ulrpc_libs) $(ulnetctl_libs) $(ulnet_libs) \
	$(unit_runner) $(CRITERION_LIBS)
AM_CPPFLAGS += $(CRITERION_CFLAGS)

# A build with fuzzers has no other programs: the main() that -fsanitize=fuzzer
# brings collides with theirs.
if WITH_FUZZERS
noinst_PROGRAMS += $(fuzz_programs)
%C%_fuzz_fuzz_handshake_LDADD = libulnetsecure.a $(LDADD) $(OPENSSL_LIBS)
%C%_fuzz_fuzz_record_LDADD = libulnetsecure.a $(LDADD) $(OPENSSL_LIBS)
%C%_fuzz_fuzz_stream_LDADD = libulnetsecure.a $(LDADD) $(OPENSSL_LIBS)
%C%_fuzz_fuzz_sealed_LDADD = $(LDADD) $(OPENSSL_LIBS)
AM_LDFLAGS += $(FUZZER_LDFLAGS)
else
check_PROGRAMS += $(thread_tests) $(sim_campaigns) $(sim_measures) \
	$(lnd_tests) $(fuzz_programs) $(body_tests)
TESTS += $(thread_tests) $(lnd_tests) $(fuzz_programs) $(body_tests)
if WITH_CRITERION
check_PROGRAMS += $(unit_tests) $(load_tests)
TESTS += $(unit_tests) $(load_tests)
endif
endif

# What pages say is so.
page_tests = %D%/architecture_check.sh %D%/cache_lines.sh %D%/cores_check.sh \
	%D%/example_check.sh %D%/log_check.sh \
	%D%/man_check.sh %D%/thread_locals.sh %D%/tutorial_check.sh \
	%D%/without_tls.sh
dist_check_SCRIPTS += $(page_tests)
EXTRA_DIST += %D%/cache_lines.txt
TESTS += $(page_tests)
EXTRA_DIST += %D%/install/tutorial.sh %D%/install/readme.sh
EXTRA_DIST += %D%/install/builds.sh %D%/install/ledger.sh
EXTRA_DIST += %D%/model/lib.sh
EXTRA_DIST += %D%/model/exactly_once.pml %D%/model/exactly_once.sh
EXTRA_DIST += %D%/model/wakeup.pml %D%/model/wakeup.sh
EXTRA_DIST += %D%/model/caretaker.pml %D%/model/caretaker.sh
EXTRA_DIST += %D%/model/wait.pml %D%/model/wait.sh

# lnetd and lnetctl, as their users see them.
tool_tests =
tool_tests += %D%/tools/arguments.sh
tool_tests += %D%/tools/completion.sh
tool_tests += %D%/tools/crash.sh
tool_tests += %D%/tools/depot.sh
tool_tests += %D%/tools/discover.sh
tool_tests += %D%/tools/dot.sh
tool_tests += %D%/tools/epoll.sh
tool_tests += %D%/tools/export.sh
tool_tests += %D%/tools/fault.sh
tool_tests += %D%/tools/full_disk.sh
tool_tests += %D%/tools/late.sh
tool_tests += %D%/tools/reach.sh
tool_tests += %D%/tools/lnetctl.sh
tool_tests += %D%/tools/lnetd.sh
tool_tests += %D%/tools/lst.sh
tool_tests += %D%/tools/lst_default.sh
tool_tests += %D%/tools/metrics.sh
tool_tests += %D%/tools/o2ib.sh
tool_tests += %D%/tools/o2ibcalc.sh
tool_tests += %D%/tools/names.sh
tool_tests += %D%/tools/names_dns.sh
if WITH_ETCD
tool_tests += %D%/tools/etcd.sh
tool_tests += %D%/tools/names_tutorial.sh
endif
tool_tests += %D%/tools/rpcping.sh
tool_tests += %D%/tools/rpc_stats.sh
tool_tests += %D%/tools/routing.sh
tool_tests += %D%/tools/rpc_survive.sh
tool_tests += %D%/tools/paused.sh
tool_tests += %D%/tools/protoc_gen_ulrpc.sh
tool_tests += %D%/tools/shm.sh
tool_tests += %D%/tools/neighbour.sh
tool_tests += %D%/tools/tcp.sh
tool_tests += %D%/tools/security_tutorial.sh
tool_tests += %D%/tools/replicas_tutorial.sh
tool_tests += %D%/tools/store.sh
tool_tests += %D%/tools/context_tutorial.sh
tool_tests += %D%/tools/stream_tutorial.sh
tool_tests += %D%/tools/stream_cut.sh
tool_tests += %D%/tools/top.sh
tool_tests += %D%/tools/keys.sh
tool_tests += %D%/tools/munge.sh
tool_tests += %D%/tools/rules.sh
tool_tests += %D%/tools/tls.sh
tool_tests += %D%/tools/ulnet-keys.sh
tool_tests += %D%/tools/ulrpc.sh
tool_tests += %D%/tools/unit_file.sh
tool_tests += %D%/tools/user.sh
tool_tests += %D%/tools/upgrade.sh
tool_tests += %D%/tools/usual_socket.sh
tool_tests += %D%/tools/vanished.sh
tool_tests += %D%/tools/wireshark.sh
%C%_tools_tape_pcap_SOURCES = %D%/tools/tape_pcap.c \
	%D%/lnd/tape.c %D%/lnd/tape.h

# The page of states, made of their tables.
tool_tests += %D%/states_check.sh
states:
	$(MAKE) $(AM_MAKEFLAGS) tests/states
	tests/states >$(srcdir)/man/man7/lnet_states.7
.PHONY: states

# Hosts on two rails: network namespaces. With netem in a virtual machine, too.
tool_tests += %D%/net/ipv6.sh
tool_tests += %D%/net/neighbour.sh
tool_tests += %D%/net/rails.sh
tool_tests += %D%/net/routers.sh
tool_tests += %D%/net/netem.sh
tool_tests += %D%/net/page.sh
# On Soft-RoCE, in the virtual machine.
tool_tests += %D%/vm/o2ib_rpc.sh
tool_tests += %D%/vm/o2ib_verbs.sh
if WITH_O2IBLND
if !WITH_FUZZERS
vm_programs = %D%/vm/o2ib_verbs
check_PROGRAMS += $(vm_programs)
endif
endif
EXTRA_DIST += %D%/packages/boot.sh %D%/packages/build.sh
EXTRA_DIST += %D%/packages/files.sh %D%/packages/root.sh
EXTRA_DIST += %D%/net/hosts.sh %D%/net/harm.sh %D%/vm/vm-run
dist_check_SCRIPTS += $(tool_tests)
EXTRA_DIST += %D%/port.sh %D%/tools/lib.sh %D%/tools/proven.sh %D%/tools/typed.sh
if !WITH_FUZZERS
TESTS += $(tool_tests)
tool_helpers = %D%/tools/proxy %D%/tools/taker %D%/tools/tape_pcap %D%/states \
	%D%/tools/flow
if WITH_PROTOC
tool_helpers += %D%/tools/trial
nodist_%C%_tools_trial_SOURCES = %D%/unit/rpc/stub/interop.pb-c.c
%C%_tools_trial_SOURCES = %D%/tools/trial.c
$(%C%_tools_trial_OBJECTS): | %D%/unit/rpc/stub/interop.ulrpc.h
endif
if WITH_MUNGE
tool_helpers += %D%/tools/munge_twice
%C%_tools_munge_twice_LDADD = libulnetsecure.a $(LDADD) $(OPENSSL_LIBS)
endif
check_PROGRAMS += $(tool_helpers)
endif

EXTRA_DIST += %D%/misuse.h %D%/tools/munge_twice.c
EXTRA_DIST += %D%/fuzz/keys.h %D%/fuzz/rpc.h %D%/port.h %D%/all_memory.h %D%/slice.h %D%/source.h %D%/tree_eq.h %D%/thread/check.h %D%/thread/keys.h %D%/thread/rig.h
EXTRA_DIST += %D%/install/lab.c %D%/install/hello.c %D%/install/job.proto %D%/install/job.c
EXTRA_DIST += %D%/fuzz/corpus %D%/fuzz/yaml.dict
EXTRA_DIST += %D%/wire %D%/config
EXTRA_DIST += %D%/unit/base/loop_rig.h %D%/unit/base/note.h
EXTRA_DIST += %D%/unit/config/stub_lnd.h %D%/unit/config/rig.h
EXTRA_DIST += %D%/unit/rpc/worker_sleep.h %D%/unit/rpc/long_reply_rig.h
EXTRA_DIST += %D%/unit/rpc/server/request_rig.h
EXTRA_DIST += %D%/unit/rpc/client/hostile_server.h
EXTRA_DIST += %D%/unit/rpc/wire/wire_rewrite.h %D%/unit/rpc/wire/wire_skew.h
EXTRA_DIST += %D%/unit/lnet/cluster.h %D%/unit/lnet/golden.h
EXTRA_DIST += %D%/unit/lnet/rails.h
EXTRA_DIST += %D%/unit/o2iblnd/examples.h %D%/unit/o2iblnd/wire_again.h
EXTRA_DIST += %D%/unit/o2iblnd/ib_rig.h %D%/unit/o2iblnd/node_rig.h
EXTRA_DIST += %D%/unit/o2iblnd/peer_rig.h %D%/unit/o2iblnd/simqp_rig.h
EXTRA_DIST += %D%/unit/lnet/injector.h %D%/unit/lnet/discovery/ping_rig.h %D%/unit/lnet/discovery/discover_rig.h
EXTRA_DIST += %D%/unit/lnet/discovery/lie_rig.h
EXTRA_DIST += %D%/unit/lnet/route/routed_rig.h %D%/unit/services/lst_rig.h
EXTRA_DIST += %D%/unit/lnet/path/path_rig.h %D%/unit/lnet/path/where.h
EXTRA_DIST += %D%/unit/rpc/wire/wire_reencode.h \
	%D%/unit/rpc/wire/wire_hex.h %D%/unit/rpc/wire/wire_random.h

EXTRA_DIST += %D%/run_test.sh

TEST_EXTENSIONS = .sh
# The installed libraries' programs find them by this.
AM_TESTS_ENVIRONMENT = LD_LIBRARY_PATH=$(abs_builddir)/.libs$${LD_LIBRARY_PATH:+:$$LD_LIBRARY_PATH}; \
	export LD_LIBRARY_PATH;
LOG_COMPILER = bash $(srcdir)/%D%/run_test.sh
SH_LOG_COMPILER = $(LOG_COMPILER)

# What delays threads against each other: see its head, and stage noise of ./check.
EXTRA_DIST += %D%/noise/noise.c
%D%/noise/noise.so: %D%/noise/noise.c
	$(AM_V_CCLD)$(MKDIR_P) %D%/noise && $(CC) -O2 -Wall -Wextra -Werror \
		-shared -fPIC -fvisibility=hidden -ftls-model=initial-exec \
		-o $@ $(srcdir)/%D%/noise/noise.c -ldl
CLEANFILES += %D%/noise/noise.so

# Each test is run by ./check in the build in which it finds most; all of them, by
# make check. memory: with the address sanitizer; thread: with the thread sanitizer;
# program: as released.
memory_tests = $(unit_tests) $(lnd_tests) $(fuzz_programs)
# A hundred processes; the thread sanitizer, under which it runs, too, has fewer.
crowd_tests = %D%/thread/callers_thread
# With threads that are delayed: all that runs in real time, but for two that begin
# hundreds of programs, and one that begins again by itself when it was too slow.
noise_not = %D%/tools/arguments.sh %D%/tools/crash.sh %D%/lnd/replay
noise_tests = $(unit_tests) $(thread_tests) \
	$(filter-out $(noise_not) %D%/vm/%,$(lnd_thread_tests) $(tool_tests))
program_programs = $(load_tests) $(body_tests) $(crowd_tests)
program_tests = $(page_tests) $(tool_tests) $(program_programs)
# Not those of LNDs whose nodes are simulated, in one thread. (o2iblnd in threads:
# %D%/thread/o2ib_thread, cpt_o2ib_thread.)
lnd_thread_tests = $(filter-out %/simlnd_test %/o2iblnd_test,$(lnd_tests))

memory-programs: generated
	$(MAKE) $(AM_MAKEFLAGS) $(memory_tests) $(sim_campaigns)
thread-programs: generated
	$(MAKE) $(AM_MAKEFLAGS) $(thread_tests)
program-tests: generated
	$(MAKE) $(AM_MAKEFLAGS) all-am $(tool_helpers) $(program_programs) \
		$(sim_measures) $(vm_programs)
sim-programs: generated
	$(MAKE) $(AM_MAKEFLAGS) $(sim_campaigns) $(sim_measures) $(lnd_soak)
vm-programs: generated
	$(MAKE) $(AM_MAKEFLAGS) all-am $(tool_helpers) $(vm_programs)

# Without these variables, check-TESTS builds everything that make check needs.
RUN_TESTS = $(MAKE) $(AM_MAKEFLAGS) check-TESTS check_LIBRARIES= \
	dist_check_SCRIPTS=
check-memory: memory-programs
	+$(RUN_TESTS) TESTS='$(memory_tests)' check_PROGRAMS='$(memory_tests)'
check-thread: thread-programs
	+$(RUN_TESTS) TESTS='$(thread_tests)' check_PROGRAMS='$(thread_tests)'
check-thread-lnd: thread-programs
	$(MAKE) $(AM_MAKEFLAGS) $(lnd_thread_tests)
	+$(RUN_TESTS) TESTS='$(thread_tests) $(lnd_thread_tests)' \
		check_PROGRAMS='$(thread_tests) $(lnd_thread_tests)'
check-programs: program-tests
	+$(RUN_TESTS) TESTS='$(program_tests)' \
		check_PROGRAMS='$(tool_helpers) $(program_programs)'
check-noise: program-tests
	$(MAKE) $(AM_MAKEFLAGS) $(filter-out %.sh,$(noise_tests)) \
		%D%/noise/noise.so
	+$(RUN_TESTS) TESTS='$(noise_tests)' \
		check_PROGRAMS='$(filter-out %.sh,$(noise_tests))'
.PHONY: check-noise
.PHONY: memory-programs thread-programs program-tests sim-programs vm-programs
.PHONY: check-memory check-thread check-thread-lnd check-programs

# For ./check, scripts/stress.sh and tests/mutants/run.sh.
print-program-tests:
	@echo $(program_tests)
print-thread-tests:
	@echo $(thread_tests)
print-lnd-tests:
	@echo $(lnd_tests)
print-sim-campaigns:
	@for p in $(sim_campaigns); do echo $$p; done
print-sim-measures:
	@for p in $(sim_measures); do echo $$p; done
print-soak:
	@echo $(lnd_soak)
print-flags:
	@echo $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS)
print-compile:
	@echo $(COMPILE)
.PHONY: print-program-tests print-thread-tests print-lnd-tests
.PHONY: print-sim-campaigns print-sim-measures print-soak print-flags print-compile
