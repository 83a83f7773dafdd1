# The LND over RDMA. All but the backend on rdma-core needs no verbs, and is always
# built.
libulnetcore_la_SOURCES += %D%/verbs.c %D%/verbs.h
libulnetcore_la_SOURCES += %D%/wire.c %D%/wire.h
libulnetcore_la_SOURCES += %D%/simqp/cm.c %D%/simqp/cm.h
libulnetcore_la_SOURCES += %D%/simqp/fabric.c %D%/simqp/fabric.h
libulnetcore_la_SOURCES += %D%/simqp/fault.c
libulnetcore_la_SOURCES += %D%/simqp/flow.c %D%/simqp/flow.h
libulnetcore_la_SOURCES += %D%/simqp/inbox.c %D%/simqp/inbox.h
libulnetcore_la_SOURCES += %D%/simqp/mr.c %D%/simqp/mr.h
libulnetcore_la_SOURCES += %D%/simqp/port.c %D%/simqp/port.h
libulnetcore_la_SOURCES += %D%/simqp/qp.c %D%/simqp/qp.h
libulnetcore_la_SOURCES += %D%/simqp/simqp.c %D%/simqp/simqp.h
libulnetcore_la_SOURCES += %D%/simqp/wr.c %D%/simqp/wr.h
# What tunables come to: pure calculation, needs no rdma-core.
libulnetcore_la_SOURCES += %D%/calc.h
libulnetcore_la_SOURCES += %D%/calc_adjust.c
libulnetcore_la_SOURCES += %D%/calc_model.c
libulnetcore_la_SOURCES += %D%/calc_negotiate.c
libulnetcore_la_SOURCES += %D%/calc_resources.c
libulnetcore_la_SOURCES += %D%/calc_rule.c
