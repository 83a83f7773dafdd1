/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include "ulnet/context.h"

/* Requirement J4: gRPC's numbers and names. */
Test(status, names_and_numbers_of_grpc)
{
	static const char *const names[] = {
		"OK",
		"CANCELLED",
		"UNKNOWN",
		"INVALID_ARGUMENT",
		"DEADLINE_EXCEEDED",
		"NOT_FOUND",
		"ALREADY_EXISTS",
		"PERMISSION_DENIED",
		"RESOURCE_EXHAUSTED",
		"FAILED_PRECONDITION",
		"ABORTED",
		"OUT_OF_RANGE",
		"UNIMPLEMENTED",
		"INTERNAL",
		"UNAVAILABLE",
		"DATA_LOSS",
		"UNAUTHENTICATED",
	};

	cr_assert_eq(ULRPC_STATUS_COUNT, 17);
	for (unsigned int i = 0; i < ULRPC_STATUS_COUNT; i++)
		cr_expect_str_eq(ulrpc_status_name((enum ulrpc_status)i),
				 names[i]);
	cr_expect_str_eq(ulrpc_status_name(ULRPC_STATUS_COUNT), "?");
	cr_expect_str_eq(ulrpc_status_name((enum ulrpc_status) - 1), "?");
}

static enum ulrpc_status failed_with(int status)
{
	struct ulrpc_outcome o = { .cause = ULRPC_CAUSE_HANDLER,
				   .status = status };

	return ulrpc_status_of(&o);
}

/* What a handler says is what its caller hears, although an errno travels. */
Test(status, there_and_back)
{
	for (unsigned int i = 1; i < ULRPC_STATUS_COUNT; i++) {
		int error = ulrpc_status_errno((enum ulrpc_status)i);

		cr_assert_lt(error, 0);
		cr_expect_eq(failed_with(error), i, "%s",
			     ulrpc_status_name((enum ulrpc_status)i));
	}
	cr_expect_eq(ulrpc_status_errno(ULRPC_STATUS_OK), 0);
	cr_expect_eq(ulrpc_status_errno(ULRPC_STATUS_COUNT),
		     ulrpc_status_errno(ULRPC_STATUS_UNKNOWN));
}

Test(status, errnos_of_services_without_statuses)
{
	cr_expect_eq(failed_with(-ENOSYS), ULRPC_STATUS_UNIMPLEMENTED);
	cr_expect_eq(failed_with(-EPERM), ULRPC_STATUS_PERMISSION_DENIED);
	cr_expect_eq(failed_with(-ENOMEM), ULRPC_STATUS_RESOURCE_EXHAUSTED);
	cr_expect_eq(failed_with(-ENOTEMPTY), ULRPC_STATUS_FAILED_PRECONDITION);
	cr_expect_eq(failed_with(-EIO), ULRPC_STATUS_UNKNOWN);
	cr_expect_eq(failed_with(-4095), ULRPC_STATUS_UNKNOWN);
	cr_expect_eq(failed_with(0), ULRPC_STATUS_UNKNOWN);
}

/* Every cause has a status, and only success is OK. */
Test(status, of_each_cause)
{
	for (unsigned int i = 0; i < ULRPC_CAUSE_COUNT; i++) {
		struct ulrpc_outcome o = { .cause = (enum ulrpc_cause)i,
					   .status = i ? -EIO : 0 };

		cr_expect_eq(ulrpc_status_of(&o) == ULRPC_STATUS_OK, i == 0,
			     "%s", ulrpc_cause_name(o.cause));
	}
	cr_expect_eq(
		ulrpc_status_of(&(struct ulrpc_outcome){
			.cause = ULRPC_CAUSE_DEADLINE, .status = -ETIMEDOUT }),
		ULRPC_STATUS_DEADLINE_EXCEEDED);
	cr_expect_eq(
		ulrpc_status_of(&(struct ulrpc_outcome){
			.cause = ULRPC_CAUSE_NO_METHOD, .status = -ENOSYS }),
		ULRPC_STATUS_UNIMPLEMENTED);
	cr_expect_eq(ulrpc_status_of(&(struct ulrpc_outcome){
			     .cause = ULRPC_CAUSE_COUNT }),
		     ULRPC_STATUS_UNKNOWN);
}
