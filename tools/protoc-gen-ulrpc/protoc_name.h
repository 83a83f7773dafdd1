/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of C as protoc-c makes them of those in a .proto. What is returned is
 * to be given back with free(); without memory the program ends.
 */
#ifndef TOOLS_PROTOC_NAME_H
#define TOOLS_PROTOC_NAME_H

#include <stdio.h>
#include "tools/protoc-gen-ulrpc/plugin.pb-c.h"

/* As asprintf(). */
char *name_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "dir/kv.proto" with suffix ".pb-c.h" is dir/kv.pb-c.h. */
char *name_file(const char *proto, const char *suffix);

/* KeyStore of package kv: kv__key_store. */
char *name_service(const Plugin__File *file, const Plugin__Service *service);
/* Its method GetAll: get_all. */
char *name_method(const Plugin__Method *method);
/* The struct of the message ".kv.Key.Part" is Kv__Key__Part. NULL: no file of
 * @request has such a message. */
char *name_message(const Plugin__Request *request, const char *full);

#endif
