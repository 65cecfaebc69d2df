"""How runner and publisher talk to the operator."""
