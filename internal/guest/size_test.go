package guest

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSizes(t *testing.T) {
	table(t, "sizes.txt", func(t *testing.T, row []string) {
		b, sure, err := ReadSize(row[0])
		got := strconv.FormatInt(int64(b), 10)
		switch {
		case err != nil:
			got = "error"
		case !sure:
			got += " ?"
		}
		if got != row[1] {
			t.Errorf("in a config: got %s (%v), want %s", got, err, row[1])
		}
		request, err := ParseRequest(row[0])
		if reason, fails := strings.CutPrefix(row[2], "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), strconv.Quote(clip(row[0]))) {
				t.Errorf("as a request: got %d, error %v, want one that says %q", request, err, reason)
			}
			return
		}
		if err != nil || strconv.FormatInt(int64(request), 10) != row[2] {
			t.Errorf("as a request: got %d, %v, want %s", request, err, row[2])
		}
	})
}

func TestParseRequestOfNothing(t *testing.T) {
	for _, text := range []string{"", " "} {
		if _, err := ParseRequest(text); err == nil || !strings.Contains(err.Error(), "empty") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSizeTexts(t *testing.T) {
	for _, test := range []struct {
		b                      Bytes
		people, alloc, written string
	}{
		{0, "0 MiB", "0", "0T"},
		{1, "1 MiB", "0.0009765625", "1"},
		{512 * MiB, "512 MiB", "0.5", "512M"},
		{513 * MiB, "513 MiB", "0.5009765625", "513M"},
		{512*MiB + 512*KiB, "513 MiB", "0.5009765625", "524800K"},
		{GiB - 1, "1 GiB", "1", "1073741823"},
		{GiB, "1 GiB", "1", "1G"},
		{GiB + 1, "2 GiB", "1.0009765625", "1073741825"},
		{8704 * MiB, "9 GiB", "8.5", "8704M"},
		{2 * TiB, "2048 GiB", "2048", "2T"},
		{528 * KiB, "1 MiB", "0.0009765625", "528K"},
		{10 * GiB, "10 GiB", "10", "10G"},
		{100 * GiB, "100 GiB", "100", "100G"},
		{math.MaxInt64, "8589934592 GiB", "8589934591.9990234375", "9223372036854775807"},
	} {
		if got := test.b.GiB(); got != test.people {
			t.Errorf("%d: people read %q, want %q", test.b, got, test.people)
		}
		if got := test.b.AllocationGiB(); got != test.alloc {
			t.Errorf("%d: allocation %q, want %q", test.b, got, test.alloc)
		}
		if got := test.b.ConfigText(); got != test.written {
			t.Errorf("%d: config %q, want %q", test.b, got, test.written)
		}
	}
	if got := Bytes(-5).GiB() + Bytes(-5).AllocationGiB(); got != "0 MiB0" {
		t.Errorf("a negative size prints %q", got)
	}
}

// Proxmox takes int(N*1024) MiB of "storage:N": what we send must give exactly the whole MiB that holds the request.
func TestAllocationSurvivesRoundingDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Int64Range(0, 1<<50).Draw(t, "bytes"))
		up := b.CeilMiB()
		if up < b || up-b >= MiB || up%MiB != 0 {
			t.Fatalf("CeilMiB(%d) = %d", b, up)
		}
		n, err := strconv.ParseFloat(b.AllocationGiB(), 64)
		if err != nil || Bytes(n*1024)*MiB != up {
			t.Fatalf("storage:%s gives %d, want %d (%v)", b.AllocationGiB(), Bytes(n*1024)*MiB, up, err)
		}
	})
}

func TestConfigTextIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Int64Range(0, 1<<52).Draw(t, "n")) * rapid.SampledFrom([]Bytes{1, KiB}).Draw(t, "unit")
		got, sure, err := ReadSize(b.ConfigText())
		if err != nil || (sure && got != b) || (!sure && got != b*KiB) {
			t.Fatalf("%d is written %q and read %d (sure %v), %v", b, b.ConfigText(), got, sure, err)
		}
	})
}

// Two readings of one number: exact arithmetic against the plain rule.
func TestReadSizeIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, part := rapid.Int64Range(0, 1<<20).Draw(t, "whole"), rapid.IntRange(0, 999).Draw(t, "part")
		text := strconv.FormatInt(whole, 10) + "." + strconv.Itoa(1000 + part)[1:] + "G"
		got, _, err := ReadSize(text)
		want := new(big.Int).Div(new(big.Int).Mul(big.NewInt(whole*1000+int64(part)), big.NewInt(int64(GiB))), big.NewInt(1000))
		if err != nil || int64(got) != want.Int64() {
			t.Fatalf("%s: got %d, want %s (%v)", text, got, want, err)
		}
	})
}
