package kubetest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/listwatch/listwatch/internal/testkit"
)

// as returns the clients of a user.
func (c *cluster) as(t *testing.T, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	return testkit.Must(kubernetes.NewForConfig(c.ConfigFor(user, groups...)))(t)
}

// allow creates a role with the given rules in the namespace default, and binds it to a subject.
func (c *cluster) allow(t *testing.T, name string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	testkit.Must(c.RbacV1().Roles("default").Create(t.Context(),
		&rbacv1.Role{ObjectMeta: named(name), Rules: rules}, metav1.CreateOptions{}))(t)
	testkit.Must(c.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: named(name), Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}, metav1.CreateOptions{}))(t)
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// rule allows verbs, which are separated by commas, for a resource of the core group.
func rule(verbs, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names,
	}
}

func wantForbidden(t *testing.T, what string, err error, text string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want %q", what, err, text)
	}
}

func TestRolesDecideWhatUsersMayDo(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.createConfigMap(t, named("a"))
		ada := c.as(t, "ada").CoreV1()
		get := func(namespace, name string) error {
			_, err := ada.ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
			return err
		}
		wantForbidden(t, "before there is a role", get("default", "a"),
			`configmaps "a" is forbidden: User "ada" cannot get resource "configmaps" in API group "" `+
				`in the namespace "default"`)
		c.allow(t, "reader", user("ada"), rule("get,list", "configmaps"), rule("update", "configmaps/status"),
			rule("delete", "configmaps", "b"))
		if err := get("default", "a"); err != nil {
			t.Error(err)
		}
		wantForbidden(t, "another namespace", get("kube-system", "a"), `in the namespace "kube-system"`)
		_, err := ada.ConfigMaps("").List(t.Context(), metav1.ListOptions{})
		wantForbidden(t, "all namespaces", err, `configmaps is forbidden: User "ada" cannot list `+
			`resource "configmaps" in API group "" at the cluster scope`)
		_, err = ada.ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
		wantForbidden(t, "another verb", err, `cannot watch resource`)
		wantForbidden(t, "another name", ada.ConfigMaps("default").Delete(t.Context(), "a", metav1.DeleteOptions{}),
			`cannot delete resource`)
		err = ada.ConfigMaps("default").Delete(t.Context(), "b", metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("the name in the role: got %v", err)
		}
		if err := c.RbacV1().Roles("default").Delete(t.Context(), "reader", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		wantForbidden(t, "after the role was deleted", get("default", "a"),
			`rbac: RBAC: role.rbac.authorization.k8s.io "reader" not found`)
	})
}

func TestApplyNeedsCreateForANewObject(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.createConfigMap(t, named("old"))
		c.allow(t, "patcher", user("ada"), rule("patch", "configmaps"))
		apply := func(name string) error {
			_, err := c.as(t, "ada").CoreV1().ConfigMaps("default").Apply(t.Context(),
				applycorev1.ConfigMap(name, "default"), metav1.ApplyOptions{FieldManager: "m"})
			return err
		}
		if err := apply("old"); err != nil {
			t.Error(err)
		}
		wantForbidden(t, "a new object", apply("new"),
			`configmaps "new" is forbidden: User "ada" cannot create resource`)
	})
}

func TestServiceAccountTokensIdentifyTheirUser(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		accounts := c.CoreV1().ServiceAccounts("default")
		testkit.Must(accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: named("robot")},
			metav1.CreateOptions{}))(t)
		c.allow(t, "reader", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "robot", Namespace: "default"},
			rule("list", "pods"))
		r := testkit.Must(accounts.CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{},
			metav1.CreateOptions{}))(t)
		config := c.Config()
		config.BearerToken = r.Status.Token
		robot := testkit.Must(kubernetes.NewForConfig(config))(t)
		list := func() error {
			_, err := robot.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
			return err
		}
		if err := list(); err != nil {
			t.Error(err)
		}
		self := testkit.Must(robot.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
			&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))(t)
		const want = "system:serviceaccount:default:robot " +
			"[system:serviceaccounts system:serviceaccounts:default system:authenticated]"
		if got := fmt.Sprint(self.Status.UserInfo.Username, " ", self.Status.UserInfo.Groups); got != want {
			t.Errorf("got the user %s, want %s", got, want)
		}
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: r.Status.Token}}
		reviews := c.AuthenticationV1().TokenReviews()
		review = testkit.Must(reviews.Create(t.Context(), review, metav1.CreateOptions{}))(t)
		if !review.Status.Authenticated {
			t.Errorf("got the review %+v", review.Status)
		}
		time.Sleep(time.Hour)
		if err := list(); !apierrors.IsUnauthorized(err) {
			t.Errorf("after the token has expired: got %v", err)
		}
	})
}

func TestServiceAccountsAreUsers(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "system", Name: "controller-manager"}
		c.allow(t, "manager", account, rule("list", "pods"))
		manager := c.as(t, "system:serviceaccount:system:controller-manager")
		if _, err := manager.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		_, err := manager.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		wantForbidden(t, "another resource", err, `User "system:serviceaccount:system:controller-manager" cannot list`)
	})
}

func TestTokensOfDeletedAccountsAreInvalid(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		accounts := c.CoreV1().ServiceAccounts("default")
		create := func() {
			testkit.Must(accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: named("robot")},
				metav1.CreateOptions{}))(t)
		}
		create()
		config := c.Config()
		config.BearerToken = testkit.Must(accounts.CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{},
			metav1.CreateOptions{}))(t).Status.Token
		if err := accounts.Delete(t.Context(), "robot", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		create() // another account with the same name
		_, err := testkit.Must(kubernetes.NewForConfig(config))(t).CoreV1().Pods("default").List(t.Context(),
			metav1.ListOptions{})
		if !apierrors.IsUnauthorized(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestUsersAreImpersonated(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.allow(t, "reader", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"},
			rule("list", "pods"))
		list := func(config *rest.Config, user string, groups ...string) error {
			config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
			_, err := testkit.Must(kubernetes.NewForConfig(config))(t).CoreV1().Pods("default").List(t.Context(),
				metav1.ListOptions{})
			return err
		}
		if err := list(c.Config(), "bob", "readers"); err != nil {
			t.Error(err)
		}
		wantForbidden(t, "without the group", list(c.Config(), "bob"), `User "bob" cannot list resource "pods"`)
		wantForbidden(t, "by a user without the right", list(c.ConfigFor("ada"), "bob"),
			`users "bob" is forbidden: User "ada" cannot impersonate resource "users" in API group "" `+
				`at the cluster scope`)
	})
}

func TestNobodyGrantsRightsThatHeLacks(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		roles := rbacv1.PolicyRule{
			Verbs: []string{"create", "update"}, APIGroups: []string{rbacv1.GroupName},
			Resources: []string{"roles", "rolebindings"},
		}
		c.allow(t, "author", user("ada"), roles, rule("get,list", "pods"))
		create := func(name string, rules ...rbacv1.PolicyRule) error {
			_, err := c.as(t, "ada").RbacV1().Roles("default").Create(t.Context(),
				&rbacv1.Role{ObjectMeta: named(name), Rules: rules}, metav1.CreateOptions{})
			return err
		}
		if err := create("own", rule("list", "pods")); err != nil {
			t.Error(err)
		}
		wantForbidden(t, "a role", create("more", rule("get,delete,watch", "pods")),
			`roles.rbac.authorization.k8s.io "more" is forbidden: user "ada" (groups=["system:authenticated"]) `+
				"is attempting to grant RBAC permissions not currently held:\n"+
				`{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}`)
		bind := func() error {
			_, err := c.as(t, "ada").RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: named("admin"), Subjects: []rbacv1.Subject{user("ada")},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			}, metav1.CreateOptions{})
			return err
		}
		wantForbidden(t, "a binding", bind(), `{APIGroups:["*"], Resources:["*"], Verbs:["*"]}`)
		c.allow(t, "binder", user("ada"), rbacv1.PolicyRule{
			Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"},
			ResourceNames: []string{"cluster-admin"},
		})
		if err := bind(); err != nil {
			t.Error(err)
		}
		if err := create("any", rule("*", "*")); err != nil {
			t.Errorf("an administrator of the namespace: %v", err)
		}
	})
}

func TestClusterRolesAreAggregated(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		roles := c.RbacV1().ClusterRoles()
		all := &rbacv1.ClusterRole{
			ObjectMeta: named("all"), AggregationRule: &rbacv1.AggregationRule{
				ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to": "all"}}},
			},
		}
		testkit.Must(roles.Create(t.Context(), all, metav1.CreateOptions{}))(t)
		part := &rbacv1.ClusterRole{ObjectMeta: named("part"), Rules: []rbacv1.PolicyRule{rule("list", "pods")}}
		part.Labels = map[string]string{"to": "all"}
		testkit.Must(roles.Create(t.Context(), part, metav1.CreateOptions{}))(t)
		testkit.Must(c.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: named("all"), Subjects: []rbacv1.Subject{user("ada")},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "all"},
		}, metav1.CreateOptions{}))(t)
		if _, err := c.as(t, "ada").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if err := roles.Delete(t.Context(), "part", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := c.as(t, "ada").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		wantForbidden(t, "after the part was deleted", err, "cannot list")
	})
}

func TestEveryClusterHasRolesForUsers(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		testkit.Must(c.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: named("viewers"), Subjects: []rbacv1.Subject{user("ada")},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		}, metav1.CreateOptions{}))(t)
		ada := c.as(t, "ada")
		testkit.Must(ada.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}))(t)
		_, err := ada.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		wantForbidden(t, "secrets", err, "cannot list")
		// A role with this label extends the roles view, edit and admin.
		testkit.Must(c.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{
				Name: "more", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"},
			},
			Rules: []rbacv1.PolicyRule{rule("list", "secrets")},
		}, metav1.CreateOptions{}))(t)
		testkit.Must(ada.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}))(t)
		admin := testkit.Must(c.RbacV1().ClusterRoles().Get(t.Context(), "admin", metav1.GetOptions{}))(t)
		if n := len(admin.Rules); n != 30 {
			t.Errorf("got %d rules of admin, want the 29 of a cluster and one more", n)
		}
	})
}

func TestReviewsTellWhatUsersMayDo(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.allow(t, "reader", user("ada"), rule("list", "pods"), rule("get", "secrets", "one"))
		attributes := &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "list", Resource: "pods"}
		self := testkit.Must(c.as(t, "ada").AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
			}, metav1.CreateOptions{}))(t)
		other := testkit.Must(c.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: "bob", ResourceAttributes: attributes},
			}, metav1.CreateOptions{}))(t)
		if !self.Status.Allowed || other.Status.Allowed {
			t.Errorf("got %+v and %+v, want only ada to be allowed", self.Status, other.Status)
		}
		rules := testkit.Must(c.as(t, "ada").AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectRulesReview{
				Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"},
			}, metav1.CreateOptions{}))(t)
		if got := fmt.Sprint(rules.Status.ResourceRules); !strings.Contains(got, "[get] [] [secrets] [one]") ||
			rules.Status.Incomplete {
			t.Errorf("got the rules %s", got)
		}
		_, err := c.as(t, "ada").AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: "bob", ResourceAttributes: attributes},
			}, metav1.CreateOptions{})
		wantForbidden(t, "a review of another user", err, `cannot create resource "subjectaccessreviews"`)
	})
}

func TestInvalidReviewsAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		_, err := c.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{
					NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
				},
			}, metav1.CreateOptions{})
		const user = `spec.user: Invalid value: "": at least one of user or group must be specified`
		if !apierrors.IsInvalid(err) || !strings.HasSuffix(err.Error(), user) {
			t.Errorf("got %v without a user, want %q", err, user)
		}
		_, err = c.AuthorizationV1().LocalSubjectAccessReviews("default").Create(t.Context(),
			&authorizationv1.LocalSubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{
					User: "ada", ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "other"},
				},
			}, metav1.CreateOptions{})
		const namespace = `Invalid value: "other": must match metadata.namespace`
		if !apierrors.IsInvalid(err) || !strings.HasSuffix(err.Error(), namespace) {
			t.Errorf("got %v for another namespace, want %q", err, namespace)
		}
		_, err = c.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{},
			metav1.CreateOptions{})
		if !apierrors.IsBadRequest(err) {
			t.Errorf("got %v without a token, want status 400", err)
		}
	})
}

func TestActionsNeedRights(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		testkit.Must(c.CoreV1().ServiceAccounts("default").Create(t.Context(),
			&corev1.ServiceAccount{ObjectMeta: named("robot")}, metav1.CreateOptions{}))(t)
		_, err := c.as(t, "ada").CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "robot",
			&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		wantForbidden(t, "a token", err, `cannot create resource "serviceaccounts/token"`)
	})
}
