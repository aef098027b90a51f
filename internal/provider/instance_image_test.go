package provider

import "testing"

func TestPlatformOfAnImage(t *testing.T) {
	for _, c := range []struct{ asked, recorded, machine, want string }{
		{want: "linux/amd64"},
		{machine: "x86_64", want: "linux/amd64"},
		{machine: "aarch64", want: "linux/arm64"},
		{machine: "riscv64", want: "linux/riscv64"},
		{machine: "something else", want: "linux/amd64"},
		{recorded: "arm64", machine: "x86_64", want: "linux/arm64"},
		{asked: "linux/arm64/v8", recorded: "amd64", machine: "x86_64", want: "linux/arm64"},
	} {
		got, err := platformOf(c.asked, c.recorded, c.machine)
		if err != nil || got.OS+"/"+got.Architecture != c.want {
			t.Errorf("asked %q, recorded %q, machine %q: %v, %v", c.asked, c.recorded, c.machine, got, err)
		}
	}
}
