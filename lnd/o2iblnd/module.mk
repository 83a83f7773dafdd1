# The LND over RDMA. All but the backend on rdma-core needs no verbs, and is always
# built.
libulnetcore_a_SOURCES += %D%/admit.c %D%/admit.h
libulnetcore_a_SOURCES += %D%/conn.c %D%/conn.h %D%/conn_priv.h
libulnetcore_a_SOURCES += %D%/credit.h
libulnetcore_a_SOURCES += %D%/receive.c
libulnetcore_a_SOURCES += %D%/exchange.c
libulnetcore_a_SOURCES += %D%/peer.c %D%/peer.h
libulnetcore_a_SOURCES += %D%/memory.c %D%/memory.h
libulnetcore_a_SOURCES += %D%/o2iblnd.c %D%/o2iblnd.h
libulnetcore_a_SOURCES += %D%/port.c
libulnetcore_a_SOURCES += %D%/regcache.c %D%/regcache.h
libulnetcore_a_SOURCES += %D%/tunable.def
libulnetcore_a_SOURCES += %D%/tx.c %D%/tx.h
libulnetcore_a_SOURCES += %D%/verbs.h
libulnetcore_a_SOURCES += %D%/wire.c %D%/wire.h
libulnetcore_a_SOURCES += %D%/xfer.c %D%/xfer.h
# The backend of tests and simulations.
libulnetlabcore_a_SOURCES += %D%/simqp/cm.c
libulnetlabcore_a_SOURCES += %D%/simqp/fabric.c %D%/simqp/fabric.h
libulnetlabcore_a_SOURCES += %D%/simqp/port.c
libulnetlabcore_a_SOURCES += %D%/simqp/qp.c %D%/simqp/qp.h
libulnetlabcore_a_SOURCES += %D%/simqp/simqp.h
# Limits that follow from tunables: calculation only, needs no rdma-core.
libulnetcore_a_SOURCES += %D%/calc.h
libulnetcore_a_SOURCES += %D%/calc_node.c %D%/calc_rule.def
libulnetcore_a_SOURCES += %D%/calc_conn.c
# The backend on rdma-core.
if WITH_O2IBLND
libulnetcore_a_SOURCES += %D%/rdma.c %D%/rdma.h
libulnetcore_a_SOURCES += %D%/rdma_conn.c
libulnetcore_a_SOURCES += %D%/rdma_qp.c
endif
