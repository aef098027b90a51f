package preview

import (
	"fmt"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// BenchmarkContainer judges a usual guest, and one with 250 volumes beside a thousand rows of other guests.
func BenchmarkContainer(b *testing.B) {
	b.Run("usual", func(b *testing.B) {
		f, w := web1()
		b.ReportAllocs()
		for b.Loop() {
			Container(f, w)
		}
	})
	b.Run("250 volumes", func(b *testing.B) {
		f, w := web1()
		for i := range 250 {
			volume := fmt.Sprintf("tank:subvol-5001-disk-%d", i)
			f.set(fmt.Sprintf("mp%d", i+3), fmt.Sprintf("%s,mp=/srv/%d,size=1G", volume, i))
			f.stored(volume, 5001, guest.GiB)
			for other := range 4 {
				f.stored(fmt.Sprintf("tank:subvol-%d-disk-%d", 6000+other, i), guest.VMID(6000+other), guest.GiB)
			}
		}
		b.ReportAllocs()
		for b.Loop() {
			Container(f, w)
		}
	})
}

// A container with nothing due is judged at every plan.
func BenchmarkInstance(b *testing.B) {
	f, w := vault()
	b.ReportAllocs()
	for b.Loop() {
		if p := Instance(f, w); p.Operation != 0 {
			b.Fatal(p.Summary)
		}
	}
}
