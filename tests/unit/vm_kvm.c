/* Whether KVM runs guests: the measurement and the probe, on whatever machine this is. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "host/vm_kvm.h"
#include "state/vm.h"

static bool is_pvm(void)
{
	return access("/sys/module/kvm_pvm", F_OK) == 0;
}

/* Without a device the refusal names what is missing, whatever module the kernel around it has. */
static void test_no_device(void **state)
{
	auto_fd kvm = open(VM_KVM, O_RDWR | O_CLOEXEC);
	struct ward_err p = { 0 };

	(void)state;
	if (kvm >= 0)
		return;
	assert_true(vm_probe_kvm(&p) < 0);
	assert_non_null(strstr(p.why, is_pvm() ? "kvm_pvm" : VM_KVM));
	assert_true(is_pvm() || p.remedy[0]);
}

/* A host whose KVM emulates is found out by measuring alone; one whose KVM does not is not refused
 * for anything else. A busy machine may spoil one of the two measurements: then both are
 * repeated. */
static void test_measured(void **state)
{
	auto_fd kvm = open(VM_KVM, O_RDWR | O_CLOEXEC);
	struct ward_err e = { 0 }, p = { 0 };
	int measured, probed, tries = 0;

	(void)state;
	if (kvm < 0)
		skip();
	if (is_pvm()) {
		assert_int_equal(vm_measure_kvm(kvm, &e), -ENOTSUP);
		assert_non_null(strstr(e.why, "this host's KVM"));
		assert_int_equal(vm_probe_kvm(&p), -ENOTSUP);
		assert_non_null(strstr(p.why, "kvm_pvm"));
		return;
	}
	do {
		measured = vm_measure_kvm(kvm, &e);
		probed = vm_probe_kvm(&p);
	} while (measured != probed && ++tries < 5);
	assert_int_equal(measured, probed);
}

/* What is no KVM at all is an error, not a crash. */
static void test_not_kvm(void **state)
{
	auto_fd null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct ward_err e = { 0 };

	(void)state;
	assert_true(vm_measure_kvm(null, &e) < 0);
	assert_non_null(strstr(e.why, "KVM"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_device),
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_not_kvm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
