// Package main is CoreDNS with only the plugins that the local cluster needs,
// which builds in seconds instead of minutes.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() {
	// The order is the order in which a query meets the plugins.
	dnsserver.Directives = []string{"reload", "bind", "ready", "errors", "kubernetes", "forward"}
	coremain.Run()
}
