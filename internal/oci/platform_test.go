package oci

import "testing"

func TestParsePlatform(t *testing.T) {
	for text, want := range map[string]string{
		"amd64": "linux/amd64", "linux/amd64": "linux/amd64", "linux/arm64/v8": "linux/arm64/v8", "i386": "linux/386",
		"armhf": "linux/arm/v7", "aarch64": "linux/arm64", "x86_64": "linux/amd64", "riscv64": "linux/riscv64", "linux/arm/v6": "linux/arm/v6",
		"": "", "windows/amd64": "", "linux/": "", "a/b/c/d": "", "linux/AMD64": "", "linux/arm64/v8/x": "", "linux/arm\x1b64": "",
	} {
		p, err := ParsePlatform(text)
		if want == "" && err == nil || want != "" && (err != nil || p.String() != want) {
			t.Errorf("%q: %s, %v; want %q", text, p, err, want)
		}
	}
	for text, want := range map[string]string{"386": "i386", "linux/arm/v6": "armhf", "arm64": "arm64", "amd64": "amd64"} {
		p, err := ParsePlatform(text)
		if err != nil || p.Arch() != want {
			t.Errorf("%s is %s to Proxmox, want %s (%v)", text, p.Arch(), want, err)
		}
	}
}

func TestChoosePlatform(t *testing.T) {
	for _, c := range []struct {
		want    string
		offered []string
		chosen  int
	}{
		{"amd64", []string{"linux/arm64", "linux/amd64"}, 1},
		{"amd64", []string{"linux/amd64", "linux/amd64"}, 0},
		{"amd64", []string{"linux/amd64/v3"}, -1},
		{"linux/amd64/v3", []string{"linux/amd64", "linux/amd64/v2", "linux/amd64/v4"}, 1},
		{"arm64", []string{"linux/arm/v7", "linux/arm64/v8"}, 1},
		{"linux/arm64/v8", []string{"linux/arm64"}, 0},
		{"armhf", []string{"linux/arm/v5", "linux/arm/v6", "linux/arm64"}, 1},
		{"linux/arm/v6", []string{"linux/arm/v7", "linux/arm/v5"}, 1},
		{"riscv64", []string{"linux/amd64"}, -1},
		{"amd64", nil, -1},
	} {
		want, err := ParsePlatform(c.want)
		noError(t, err)
		var offered []Platform
		for _, text := range c.offered {
			p, err := ParsePlatform(text)
			noError(t, err)
			offered = append(offered, p)
		}
		if got := want.choose(offered); got != c.chosen {
			t.Errorf("%s of %v: %d, want %d", c.want, c.offered, got, c.chosen)
		}
	}
}
