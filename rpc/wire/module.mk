# Encodes and decodes what goes over the wire.
libulrpccore_a_SOURCES += %D%/wire.c %D%/wire.h %D%/wire_messages.h
libulrpccore_a_SOURCES += %D%/wire_field.c %D%/wire_field.h
libulrpccore_a_SOURCES += %D%/wire_put.h

# The messages in the language of protobuf, for readers and tests. The library has a
# codec of its own; tests compare it with wire.proto.
dist_noinst_DATA += %D%/wire.proto
protos_made += %D%/wire.pb-c.h %D%/wire.pb-c.c
nodist_libulrpcwire_a_SOURCES += %D%/wire.pb-c.c
