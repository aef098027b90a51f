package provider

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// check is a string validator made of one function, whose error says what to write instead.
type check struct {
	about string
	test  func(string) error
}

func (c check) Description(context.Context) string         { return c.about }
func (c check) MarkdownDescription(context.Context) string { return c.about }

func (c check) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if err := c.test(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, fmt.Sprintf("%s is not usable", req.Path), sentence(err.Error()))
	}
}

// isDuration accepts what Go reads as a positive duration.
func isDuration() validator.String {
	return check{about: `a duration such as "90s", "5m" or "2h"`, test: func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf(`cannot read duration %q: write a number with a unit, such as "90s", "5m" or "2h"`, text)
		}
		return nil
	}}
}

// isSize accepts a size with a unit.
func isSize() validator.String {
	return check{about: `a size with a unit, such as "9GiB" or "512M"`, test: func(text string) error {
		_, err := guest.ParseRequest(text)
		return err
	}}
}

// isWaivable accepts the codes of blockers that may be waived.
func isWaivable() validator.String {
	return check{about: "the code of a blocker that can be waived", test: func(text string) error {
		code, known := preview.ParseCode(text)
		if known && code.Waivable() {
			return nil
		}
		var usable []string
		for _, c := range preview.Codes() {
			if c.Waivable() {
				usable = append(usable, c.String())
			}
		}
		if known {
			return fmt.Errorf("cannot waive %q: only %s can be", text, list(usable))
		}
		return fmt.Errorf("cannot waive %q: there is no such code; %s can be waived", text, list(usable))
	}}
}

// isConsented accepts what erase may name for a key.
func isConsented() validator.String {
	return check{about: `a whole volume id, or "*" for whatever is there`, test: func(text string) error {
		if text == "*" {
			return nil
		}
		if _, err := guest.ParseVolumeID(text); err != nil {
			return fmt.Errorf(`%w; write the whole volume id as the plan shows it, or "*" for whatever is there`, err)
		}
		return nil
	}}
}

// isOperation accepts the id of an operation.
func isOperation() validator.String {
	return check{about: "the id of an operation, such as op-5001-20261201-3f2a", test: func(text string) error {
		if !guest.ValidOperationID(text) {
			return fmt.Errorf("cannot read operation %q: write the id as the refused plan names it, such as op-5001-20261201-3f2a", text)
		}
		return nil
	}}
}

// isEndpoint accepts the address of a node.
func isEndpoint() validator.String {
	return check{about: "the address of a node, such as https://pve1.example.org:8006", test: func(text string) error {
		u, err := url.Parse(text)
		if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
			return fmt.Errorf("cannot read endpoint %q: write an address such as https://pve1.example.org:8006", text)
		}
		if u.User != nil {
			return errors.New("cannot use the endpoint: it must not carry a user name or a password")
		}
		return nil
	}}
}

// isRange accepts a range of VMIDs.
func isRange() validator.String {
	return check{about: "a range of VMIDs, such as " + parkingRange, test: func(text string) error {
		_, _, err := parseRange(text)
		return err
	}}
}
