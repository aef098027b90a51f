package pvesim

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var (
	configIDRE   = regexp.MustCompile(`^(?i:[a-z][a-z0-9_-]+)$`)
	idRE         = regexp.MustCompile(`^(?i:[a-z][a-z0-9\-_.]*[a-z0-9])$`)
	vmidRE       = regexp.MustCompile(`^[1-9][0-9]{2,8}$`)
	volumeIDRE   = regexp.MustCompile(`^(?i:([a-z][a-z0-9\-_.]*[a-z0-9])):(.+)$`)
	macRE        = regexp.MustCompile(`^(?i:[a-f0-9][02468ace](?::[a-f0-9]{2}){5})$`)
	dnsNameRE    = regexp.MustCompile(`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\.)*[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?$`)
	diskSizeRE   = regexp.MustCompile(`^(\d+(?:\.\d+)?)([KMGT](?:iB)?)?$`)
	startupRE    = regexp.MustCompile(`^(?:(?:order=)?\d+|up=\d+|down=\d+)$`)
	tagRE        = regexp.MustCompile(`^(?i:[a-z0-9_][a-z0-9_\-+.]*)$`)
	poolIDRE     = regexp.MustCompile(`^[A-Za-z0-9.\-_]+(?:/[A-Za-z0-9.\-_]+){0,2}$`)
	userIDRE     = regexp.MustCompile(`^[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+$`)
	tokenIDRE    = regexp.MustCompile(`^[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+![A-Za-z][A-Za-z0-9.\-_]+$`)
	bridgeIDRE   = regexp.MustCompile(`^[-_.\w]+$`)
	ifaceRE      = regexp.MustCompile(`^(?i:[a-z][a-z0-9_]{1,20}(?:[:.]\d+)?)$`)
	urlencodedRE = regexp.MustCompile(`^[-%a-zA-Z0-9_.!~*'()]*$`)
	zoneRE       = regexp.MustCompile(`^(?:host|[A-Za-z]+(?:/[A-Za-z0-9_+-]+){0,2})$`)
	mpBadRE      = regexp.MustCompile(`/\.\.?/|/\.\.?$|^\.\.?/`)
	deviceRE     = regexp.MustCompile(`^/dev/.+$`)
	calendarRE   = regexp.MustCompile(`^[a-z0-9*/:,.\s-]+$`)
	bootDeviceRE = regexp.MustCompile(`^(?:ide[0-3]|sata[0-5]|scsi(?:[12]?[0-9]|30)|virtio(?:[0-9]|1[0-5])|net(?:[12]?[0-9]|3[01])|usb\d+|hostpci\d+)$`)
	haResourceRE = regexp.MustCompile(`^(?:(?:vm|ct):)?[1-9][0-9]{2,8}$`)
)

// checkNamedFormat applies one of Proxmox's registered formats, "-list" and "-opt" included. A
// format that is not known here accepts everything.
func checkNamedFormat(format, value string) error {
	if check := namedFormats(format); check != nil {
		return check(value)
	}
	if base, ok := strings.CutSuffix(format, "-list"); ok {
		if check := namedFormats(base); check != nil {
			for _, v := range splitList(value) {
				if err := check(v); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if base, ok := strings.CutSuffix(format, "-opt"); ok && value != "" {
		if check := namedFormats(base); check != nil {
			return check(value)
		}
	}
	return nil
}

func byRegexp(re *regexp.Regexp, text string, withValue bool) func(string) error {
	return func(v string) error {
		if re.MatchString(v) {
			return nil
		}
		if withValue {
			return fmt.Errorf(text, v)
		}
		return errors.New(text)
	}
}

func namedFormats(name string) func(string) error {
	switch name {
	case "pve-vmid":
		return checkVMID
	case "pve-node":
		return checkNodeName
	case "pve-configid":
		return byRegexp(configIDRE, "invalid configuration ID '%s'", true)
	case "pve-bridge-id":
		return byRegexp(bridgeIDRE, "invalid bridge ID '%s'", true)
	case "pve-storage-id":
		return checkStorageID
	case "pve-volume-id":
		return byRegexp(volumeIDRE, "unable to parse volume ID '%s'", true)
	case "pve-volume-id-or-qm-path":
		return checkVolumeIDOrQMPath
	case "pve-volume-id-or-absolute-path":
		return func(v string) error {
			if strings.HasPrefix(v, "/") || volumeIDRE.MatchString(v) {
				return nil
			}
			return fmt.Errorf("unable to parse volume ID '%s'", v)
		}
	case "mac-addr":
		return byRegexp(macRE, "value does not look like a valid unicast MAC address", false)
	case "ipv4":
		return checkAddress("IPv4 address", isIPv4)
	case "ipv6":
		return checkAddress("IPv6 address", isIPv6)
	case "ip":
		return checkAddress("IP address", isIP)
	case "CIDR":
		return checkAddress("CIDR network", func(v string) bool { return isCIDR(v, true) || isCIDR(v, false) })
	case "CIDRv4":
		return checkAddress("IPv4 CIDR network", func(v string) bool { return isCIDR(v, true) })
	case "CIDRv6":
		return checkAddress("IPv6 CIDR network", func(v string) bool { return isCIDR(v, false) })
	case "pve-ipv4-config":
		return checkAddress("ipv4 network configuration", func(v string) bool {
			return v == "dhcp" || v == "manual" || isCIDR(v, true)
		})
	case "pve-ipv6-config":
		return checkAddress("ipv6 network configuration", func(v string) bool {
			return v == "auto" || v == "dhcp" || v == "manual" || isCIDR(v, false)
		})
	case "address", "lxc-ip-with-ll-iface", "pve-storage-server":
		return func(v string) error {
			bare, _, _ := strings.Cut(v, "%")
			if isIP(bare) || dnsNameRE.MatchString(v) {
				return nil
			}
			return fmt.Errorf("value does not look like a valid address: %s", v)
		}
	case "dns-name":
		return byRegexp(dnsNameRE, "value does not look like a valid DNS name", false)
	case "disk-size":
		return byRegexp(diskSizeRE, "value does not look like a valid disk size: %s", true)
	case "pve-startup-order":
		return checkStartup
	case "pve-tag":
		return byRegexp(tagRE, "invalid characters in tag", false)
	case "pve-poolid":
		return byRegexp(poolIDRE, "pool ID '%s' contains invalid characters", true)
	case "pve-userid":
		return byRegexp(userIDRE, "value '%s' does not look like a valid user name", true)
	case "pve-tokenid":
		return byRegexp(tokenIDRE, "value '%s' does not look like a valid token ID", true)
	case "pve-iface":
		return byRegexp(ifaceRE, "invalid network interface name '%s'", true)
	case "urlencoded":
		return byRegexp(urlencodedRE, "invalid urlencoded string: %s", true)
	case "pve-ct-timezone":
		return byRegexp(zoneRE, "invalid time zone '%s'", true)
	case "pve-lxc-mp-string":
		return func(v string) error {
			if mpBadRE.MatchString(v) {
				return fmt.Errorf("%s contains illegal character sequences", v)
			}
			return nil
		}
	case "pve-lxc-dev-string":
		return byRegexp(deviceRE, "%s is not a valid device path", true)
	case "pve-storage-content":
		return func(v string) error {
			if validContent(v) {
				return nil
			}
			return fmt.Errorf("invalid content type '%s'", v)
		}
	case "pve-storage-path":
		return func(v string) error {
			if strings.HasPrefix(v, "/") {
				return nil
			}
			return errors.New("value does not look like a valid absolute path")
		}
	case "pve-calendar-event":
		return checkCalendar
	case "pve-qm-bootdev":
		return byRegexp(bootDeviceRE, "invalid boot device '%s'", true)
	case "pve-ha-resource-or-vm-id":
		return byRegexp(haResourceRE, "unable to parse HA resource '%s'", true)
	}
	return nil
}

// checkVMID and checkNodeName look at nearly every request, so they do without regular expressions.
func checkVMID(v string) error {
	if len(v) < 3 || len(v) > 9 || v[0] == '0' || !isDigits(v) {
		return errors.New("value does not look like a valid VM ID")
	}
	return nil
}

func checkNodeName(v string) error {
	bad := v == "" || v[0] == '-' || v[len(v)-1] == '-' || strings.ContainsFunc(v, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	})
	if bad {
		return errors.New("value does not look like a valid node name")
	}
	return nil
}

func checkStorageID(v string) error {
	if len(v) < 2 {
		return fmt.Errorf("storage ID '%s' cannot be shorter than 2 characters", v)
	}
	if !idRE.MatchString(v) {
		return fmt.Errorf("storage ID '%s' contains illegal characters", v)
	}
	return nil
}

func checkVolumeIDOrQMPath(v string) error {
	switch {
	case v == "none", v == "cdrom", strings.HasPrefix(v, "/"):
		return nil
	case vmDiskRE.MatchString(v), volumeIDRE.MatchString(v):
		return nil
	}
	return fmt.Errorf("unable to parse volume ID '%s'", v)
}

func checkStartup(v string) error {
	for part := range strings.SplitSeq(v, ",") {
		if strings.TrimSpace(part) != "" && !startupRE.MatchString(part) || v == "" {
			return errors.New("unable to parse startup options")
		}
	}
	return nil
}

func checkCalendar(v string) error {
	named := map[string]bool{"minutely": true, "hourly": true, "daily": true, "weekly": true, "monthly": true, "yearly": true}
	if named[v] || calendarRE.MatchString(strings.ToLower(v)) && strings.ContainsAny(v, "0123456789*") {
		return nil
	}
	return fmt.Errorf("invalid calendar event '%s' - %w", v, calendarError(v))
}

// calendarError is what the parser of calendar events says; its text ends in a line end, which shows
// wherever Proxmox quotes it.
type calendarError string

func (e calendarError) Error() string {
	return fmt.Sprintf("unable to parse calendar event '%s'\n", string(e))
}

func checkAddress(what string, ok func(string) bool) func(string) error {
	return func(v string) error {
		if ok(v) {
			return nil
		}
		return errors.New("value does not look like a valid " + what)
	}
}

func isIP(v string) bool {
	_, err := netip.ParseAddr(v)
	return err == nil
}

func isIPv4(v string) bool {
	a, err := netip.ParseAddr(v)
	return err == nil && a.Is4()
}

func isIPv6(v string) bool {
	a, err := netip.ParseAddr(v)
	return err == nil && a.Is6()
}

func isCIDR(v string, v4 bool) bool {
	addr, bits, ok := strings.Cut(v, "/")
	n, err := strconv.Atoi(bits)
	if !ok || err != nil || n <= 7 {
		return false
	}
	if v4 {
		return isIPv4(addr) && n <= 32
	}
	return isIPv6(addr) && n <= 128
}

// splitList splits Proxmox's lists: separated by commas, semicolons, white space or NUL; empty items
// are dropped.
func splitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return r == ',' || r == ';' || r == ' ' || r == 0 || r == '\t' || r == '\n'
	})
}
